package controld

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// backup is the state of now.
func (c *controller) backup() *store.Backup {
	c.t.Helper()
	stream, err := c.admin.BackupState(c.t.Context(), connect.NewRequest(&apiv1.BackupStateRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	var all bytes.Buffer
	for stream.Receive() {
		all.Write(stream.Msg().Data)
	}
	b, err := store.ReadBackup(&all)
	if err != nil || stream.Err() != nil {
		c.t.Fatal(err, stream.Err())
	}
	return b
}

// h1 moved since the backup, h3 joined and got the locator that h1 had, h2 left, r2 and the service "new" came.
func TestAfterAYesterdaysStateEverybodyKeepsWhatHeHasToday(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Grace: long, Quarantine: long})
	old := c.create("old")
	c.router("r1")
	h1, h2 := c.host("h1", "r1"), c.host("h2", "r1")
	yesterday := h1.locator()
	gone := h2.locator()
	c.await("both are saved", func() bool { return len(c.backup().State.Hosts) == 2 })
	b := c.backup()

	c.kill()
	if err := os.RemoveAll(c.data); err != nil {
		t.Fatal(err)
	}
	if err := store.Restore(t.Context(), store.Config{Dir: c.data, Network: "test", Log: slog.New(slog.DiscardHandler)}, b); err != nil {
		t.Fatal(err)
	}
	c.run(config.Config{Grace: long, Quarantine: long})

	r1 := c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1"})
	today := gone + 40 // given by the controller of yesterday's state
	r1.states("up", yesterday, today)
	c.joinRouter(&apiv1.RouterJoin{Name: "r2", Service: true, BootId: "boot-r2", Had: 9})
	moved := sid.Locator(uint64(yesterday)&^0xffff | 9<<8 | 1)

	j := join("fresh", "r1")
	if refused := c.refusal(j); refused == nil || !refused.Retry {
		t.Errorf("a new host is answered %v before those of before have come; want to be told to try again", refused)
	}
	j3 := join("h3", "r1")
	j3.Locator, j3.BootId = yesterday.String(), "boot-h3"
	if h3 := c.admitted(j3); h3.locator() != yesterday {
		t.Errorf("h3 has %v today and gets %v", yesterday, h3.locator())
	}
	j4 := join("h4", "r1")
	j4.Locator, j4.BootId = today.String(), "boot-h4"
	if h4 := c.admitted(j4); h4.locator() != today {
		t.Errorf("h4 has %v today and gets %v", today, h4.locator())
	}
	j1 := join("h1", "r2")
	j1.Locator = moved.String()
	again := c.admitted(j1)
	if again.locator() != moved {
		t.Errorf("h1 has %v today and gets %v", moved, again.locator())
	}
	if to := r1.redirected(yesterday); to != 0 {
		t.Errorf("what comes to h3's locator is sent to %v, where h1 went yesterday", to)
	}
	unknown := sid.ServiceID{SS: 1, Suffix: 0x19e1743d84b8b434}
	again.serves(web(unknown), web(old))
	c.event("service.unknown")
	c.event("controller.restored")
	status, err := c.admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	if err != nil || status.Msg.Restored == "" || status.Msg.UnknownServices != 1 {
		t.Errorf("status %v, %v: want that it was restored, and one service that is missing", status, err)
	}
}

// admitted waits until the host is in.
func (c *controller) admitted(j *apiv1.Join) *fakeHost {
	h := c.joinHost(j)
	c.await(j.Name+" has joined", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.joined != nil })
	return h
}

// refusal is the answer to a Join that is refused, nil to one that is not.
func (c *controller) refusal(j *apiv1.Join) *apiv1.Refused {
	c.t.Helper()
	stream := c.agent.Host(c.t.Context())
	defer stream.CloseRequest()
	if err := stream.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: j}}); err != nil {
		c.t.Fatal(err)
	}
	o, err := stream.Receive()
	if err != nil && !strings.Contains(err.Error(), "EOF") {
		c.t.Fatal(err)
	}
	return o.GetRefused()
}
