package controld

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// served is a network in which s1 and s2 serve web at r1, and the weights that its router has. Its state is saved.
func served(t *testing.T) (c *controller, id sid.ServiceID, want weights) {
	t.Helper()
	c = start(t, config.Config{})
	id = c.create("web")
	r := c.router("r1")
	a, b := c.host("s1", "r1"), c.host("s2", "r1")
	a.serves(web(id))
	b.serves(web(id))
	want = weights{a.locator(): 100, b.locator(): 100}
	r.has(web(id), want)
	return c, id, want
}

// A switch tries to connect after pauses that are longer than the grace, and its hosts reach the controller by it only.
func TestWhatServesBehindASwitchThatIsNotBackIsPlanned(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	back := func(name, boot string) *fakeRouter {
		return c.joinRouter(&apiv1.RouterJoin{Name: name, Service: true, BootId: boot})
	}
	r := back("r1", "openflow-1")
	back("r2", "openflow-2")
	a, b := c.host("s1", "r1"), c.host("s2", "r2")
	a.serves(web(id))
	b.serves(web(id))
	want := weights{a.locator(): 100, b.locator(): 100}
	r.has(web(id), want)

	again := func(lease time.Duration) {
		c.kill()
		c.run(config.Config{Grace: 10 * time.Millisecond, SwitchLease: lease, Lease: long})
		r = back("r1", "openflow-1")
		c.host("s1", "r1").serves(web(id))
	}
	again(long)
	c.event("controller.settle")
	r.has(web(id), want)
	if r.first(web(id)) != 2 {
		t.Errorf("the first resolution that the switch got has %d targets, want both", r.first(web(id)))
	}
	again(time.Millisecond)
	c.event("host.silent") // a switch that never comes is not trusted for ever
	alone := maps.Clone(want)
	delete(alone, b.locator())
	r.has(web(id), alone)
	back("r2", "openflow-2")
	r.has(web(id), want)
}

// A host's word, or its router's, takes back what is stored.
func TestWhatIsStoredLastsUntilSomebodySaysOtherwise(t *testing.T) {
	t.Parallel()
	for what, says := range map[string]func(*controller, *fakeRouter, sid.Locator){
		"its router": func(_ *controller, r *fakeRouter, l sid.Locator) { r.state(l, "gone") },
		"the host":   func(c *controller, _ *fakeRouter, _ sid.Locator) { c.host("s2", "r1").serves() },
		"an operator": func(c *controller, _ *fakeRouter, _ sid.Locator) {
			if _, err := c.local().trust.Forget(t.Context(), connect.NewRequest(&apiv1.ForgetRequest{Role: "host", Name: "s2"})); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			c, id, want := served(t)
			c.kill()
			// The lease is to end, but not before the router has said what it probes, whatever else the machine does.
			c.run(config.Config{Grace: time.Millisecond, Lease: 2 * time.Second})
			r := c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1"})
			var s2 sid.Locator
			for l := range want {
				r.state(l, "up")
				s2 = max(s2, l)
			}
			c.host("s1", "r1").serves(web(id))
			c.event("host.silent")
			r.has(web(id), want)
			says(c, r, s2)
			delete(want, s2)
			r.has(web(id), want)
			c.await("one host is stored", func() bool { return len(c.backup().State.Registrations) == 1 })
			c.kill()
			c.run(config.Config{Grace: time.Millisecond})
			r = c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1"})
			r.has(web(id), want)
		})
	}
}

// The next term checks the permit itself: the host cannot sign for it.
func TestWhatServesByPermitIsPlannedByTheNextTerm(t *testing.T) {
	t.Parallel()
	for _, trust := range []string{config.TrustOpen, config.TrustKeys} {
		c := start(t, config.Config{Trust: trust})
		r := c.router("r1")
		key, now := newKey(t), time.Now().Unix()
		id := c.keyed("web", key)
		s1 := c.permittee("s1")
		s1.shows(web(id), wire.Delegate(key, id, s1.public(), now-60, now+3600))
		want := weights{s1.locator(): 100}
		r.has(web(id), want)
		c.kill()
		c.run(config.Config{Trust: trust, Grace: time.Millisecond})
		r = c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1"})
		r.has(web(id), want)
	}
}

// Controllers of versions before store nothing of what hosts serve: after a term of theirs hosts have more time to say it.
func TestAfterATermThatStoredNothingHostsHaveMoreTime(t *testing.T) {
	t.Parallel()
	c, id, want := served(t)
	for _, then := range []struct {
		before func()
		settle string
	}{
		{func() {}, "in 20ms"},
		{func() { aTerm(t, c.data) }, "in 100ms"},
		{func() {}, "in 20ms"},
	} {
		c.kill()
		then.before()
		c.run(config.Config{Grace: 20 * time.Millisecond})
		r := c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1"})
		r.has(web(id), want)
		if e := c.event("controller.settle"); !strings.Contains(e.Text, then.settle) {
			t.Errorf("%q, want it %s", e.Text, then.settle)
		}
	}
}

// aTerm is one in which nothing is stored.
func aTerm(t *testing.T, data string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: data, Network: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A backup has what hosts serve; what of it cannot be read is named, and the rest is planned.
func TestARecordThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	c, id, want := served(t)
	text := c.backupText()
	c.kill()
	text = strings.Replace(text, `{"form":1,"host":"s2"`, `{"form":2,"host":"s2"`, 1)
	b, err := store.ReadBackup(strings.NewReader(summed(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(c.data); err != nil {
		t.Fatal(err)
	}
	if err := store.Restore(t.Context(), store.Config{Dir: c.data, Network: "test", Log: slog.New(slog.DiscardHandler)}, b); err != nil {
		t.Fatal(err)
	}
	c.run(config.Config{Grace: 10 * time.Millisecond})
	if e := c.event("controller.unread"); e.Attrs["record"] != "registrations/s2/1" || !strings.Contains(e.Text, "form 2") {
		t.Errorf("%v, want the record and its form", e)
	}
	r := c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1"})
	c.event("controller.settle")
	s2 := c.host("s2", "r1")
	without := maps.Clone(want)
	delete(without, s2.locator())
	r.has(web(id), without)
	s2.serves(web(id))
	r.has(web(id), want)
	c.await("the record is replaced", func() bool { return len(c.backup().State.Registrations) == 2 })
}

// backupText is the state of now as a file has it.
func (c *controller) backupText() string {
	c.t.Helper()
	stream, err := c.admin.BackupState(c.t.Context(), connect.NewRequest(&apiv1.BackupStateRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	var all bytes.Buffer
	for stream.Receive() {
		all.Write(stream.Msg().Data)
	}
	return all.String()
}

// summed is a backup that was changed, with the sum of what it is now.
func summed(text string) string {
	lines := strings.SplitAfter(text, "\n")
	all := strings.Join(lines[:len(lines)-2], "")
	sum := sha256.Sum256([]byte(all))
	return all + fmt.Sprintf("{\"sha256\":%q}\n", hex.EncodeToString(sum[:]))
}
