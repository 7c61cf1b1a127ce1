package controld

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/user"
	"strings"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/saving"
	"scaffold.dev/scaffold/internal/controller/store"
)

// history asks for events as an operator does.
func (c *controller) history(m *apiv1.WatchEventsRequest) (list []*apiv1.Event) {
	c.t.Helper()
	m.History = 2 * events.Remembered
	s, err := c.local().admin.WatchEvents(c.t.Context(), connect.NewRequest(m))
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	for s.Receive() {
		list = append(list, s.Msg())
	}
	return list
}

// TestTheHistorySaysWhoOrderedWhatAndOutlivesTheController: with values before and after, and dates.
func TestTheHistorySaysWhoOrderedWhatAndOutlivesTheController(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c, at := keyed(t, config.Config{})
	ann, _ := c.member(at, "admin", "ann")
	admin := call(t, at, ann.Config()).admin
	c.create("web") // on the socket
	ctx := t.Context()
	if _, err := admin.UpdatePolicy(ctx, connect.NewRequest(&apiv1.UpdatePolicyRequest{Name: "web", Policy: &apiv1.Policy{Ready: "tcp"}, Version: 1})); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.UpdateAccess(ctx, connect.NewRequest(&apiv1.UpdateAccessRequest{Name: "web", Access: &apiv1.Access{Allow: []string{"c1"}}, Version: 2, AnyServer: true})); err != nil {
		t.Fatal(err)
	}
	before := c.history(&apiv1.WatchEventsRequest{})
	c.kill()
	c.run(config.Config{Trust: config.TrustKeys, Listen: []string{"https://" + at}})
	var last uint64
	seen := map[uint64]*apiv1.Event{}
	for _, e := range c.history(&apiv1.WatchEventsRequest{}) {
		if at, err := time.Parse(time.RFC3339, e.Time); err != nil || at.UnixMilli() != e.UnixMs {
			t.Errorf("%s is dated %q", e.Kind, e.Time)
		}
		if e.Seq <= last {
			t.Errorf("event %d follows %d", e.Seq, last)
		}
		last = e.Seq
		seen[e.Seq] = e
	}
	for _, e := range before {
		if !proto.Equal(seen[e.Seq], e) {
			t.Errorf("%d %s %s is lost by a restart, or altered: %v", e.Seq, e.Kind, e.Text, seen[e.Seq])
		}
	}
	var told []string
	for _, e := range c.history(&apiv1.WatchEventsRequest{By: "ann", Of: "web"}) {
		told = append(told, fmt.Sprintf("%s %s: %s", e.By.Role, e.By.Name, e.Text))
		if !strings.HasPrefix(e.By.Address, "127.0.0.1:") || len(e.Changes) != 1 {
			t.Errorf("%v: want the address it came from and one change", e)
		}
	}
	want := []string{"admin ann: policy changed: ready from listening to tcp", "admin ann: who may serve and connect changed: allow from everybody to c1"}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("ann ordered %q, want %q", told, want)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	local := c.history(&apiv1.WatchEventsRequest{By: me.Username, Of: "web"})
	if len(local) != 1 || local[0].Kind != "service.create" || local[0].By.Role != "local" || fmt.Sprint(local[0].By.GetUid()) != me.Uid {
		t.Errorf("the local user %s ordered %v, want that web was made", me.Username, local)
	}
	if future := c.history(&apiv1.WatchEventsRequest{SinceUnixMs: time.Now().Add(time.Hour).UnixMilli()}); len(future) != 0 {
		t.Errorf("%d events since an hour from now", len(future))
	}
}

// TestWhoTookACopyOfTheStateIsInTheHistory: the network's key is in it.
func TestWhoTookACopyOfTheStateIsInTheHistory(t *testing.T) {
	t.Parallel()
	c, at := keyed(t, config.Config{})
	ann, _ := c.member(at, "admin", "ann")
	s, err := call(t, at, ann.Config()).admin.BackupState(t.Context(), connect.NewRequest(&apiv1.BackupStateRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	for s.Receive() { // all of it
	}
	if list := c.history(&apiv1.WatchEventsRequest{By: "ann", Audit: true}); len(list) != 1 || list[0].Kind != "state.backup" {
		t.Errorf("ann did %v, want that a backup was taken", list)
	}
}

// A ledger keeps what was committed together.
type ledger struct {
	mu      sync.Mutex
	commits [][]string
}

func (l *ledger) Commit(_ context.Context, changes ...store.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for _, c := range changes {
		keys = append(keys, c.Key())
	}
	l.commits = append(l.commits, keys)
	return nil
}

func (l *ledger) Probe(context.Context) error { return nil }

// TestAnOrderAndItsEventAreSavedTogether: there is no order without a trace, and no trace of what was not done.
func TestAnOrderAndItsEventAreSavedTogether(t *testing.T) {
	t.Parallel()
	l := new(ledger)
	c := onDisk(t, l)
	c.create("web")
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, keys := range l.commits {
		if joined := strings.Join(keys, " "); strings.Contains(joined, "service/") && !strings.Contains(joined, "ordered/") {
			t.Errorf("a service is saved without the event: %v", keys)
		}
	}
	if len(l.commits) == 0 {
		t.Error("nothing was saved")
	}
}

// TestNoOrderIsWithoutATrace: also one whose author forgot the event.
func TestNoOrderIsWithoutATrace(t *testing.T) {
	t.Parallel()
	l := new(ledger)
	c := orders.Change{Records: []store.Change{store.DeleteHost("h")}, Effect: func() {}}
	n := newNetwork(newProcess(config.Config{Name: "c1"}, new(store.Store), nil), saving.New(l), slog.New(slog.DiscardHandler))
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveNetwork(t, n, door)
	if err := n.orders.Save(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.commits) != 1 || len(l.commits[0]) != 2 || !strings.HasPrefix(l.commits[0][1], "ordered/") {
		t.Errorf("saved is %q, want the record with an entry of the history", l.commits)
	}
}

// TestRefusedCallsAreToldInMeasure: those of members are saved with what happens, unauthenticated ones cost no write.
func TestRefusedCallsAreToldInMeasure(t *testing.T) {
	t.Parallel()
	c, at := keyed(t, config.Config{})
	host, _ := c.member(at, "host", "s1")
	member, nobody := call(t, at, host.Config()).admin, call(t, at, nil).admin
	began := time.Now()
	for range 5 * events.RefusedBurst {
		_, err := member.RemoveService(t.Context(), connect.NewRequest(&apiv1.RemoveServiceRequest{Name: "web"}))
		refusedWith(t, "a host removes a service", err, connect.CodePermissionDenied, "may not")
		if _, err = nobody.RemoveService(t.Context(), connect.NewRequest(&apiv1.RemoveServiceRequest{Name: "web"})); err == nil {
			t.Fatal("a call without a credential removed a service")
		}
	}
	// One more for each second that this machine took for them.
	most := events.RefusedBurst + int(time.Since(began).Seconds()*events.RefusedASecond) + 1
	c.await("the refusals are told", func() bool { return len(c.history(&apiv1.WatchEventsRequest{By: "s1"})) > 1 }) // beside its enrolment
	c.kill()
	c.run(config.Config{Trust: config.TrustKeys, Listen: []string{"https://" + at}})
	count := map[string]int{}
	for _, e := range c.history(&apiv1.WatchEventsRequest{Audit: true}) {
		if e.Kind == orders.RefusedCallKind {
			count[e.By.Role]++
			if !e.Refused || e.Attrs["call"] != "/scaffold.v1.Admin/RemoveService" {
				t.Errorf("%v", e)
			}
		}
	}
	if count["host"] == 0 || count["host"] > most || count[gate.RoleUnauthenticated] != 0 {
		t.Errorf("saved are refusals of %v, want 1 to %d of the host and none of unauthenticated calls", count, most)
	}
}
