package boost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
)

// A network is an open one, as its agents of boost see it, with a clock of its own.
type network struct {
	*Boost
	t      *testing.T
	now    time.Time
	later  []func()
	by     []*stream // of agents
	byHand bool      // agents take what they are told when the test says so
	events []string
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t, now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	n.Boost = New(Config{
		Trust: "open", Patience: Patience, Members: n, Events: n, Saver: n, Loop: n, Orders: n,
		Accept: func() *apiv1.BoostJoined { return &apiv1.BoostJoined{Network: "test", Trust: "open"} },
	})
	n.clock = func() time.Time { return n.now }
	return n
}

func (n *network) Fresh(gate.Peer) *apiv1.Credential                              { return nil }
func (n *network) Succeeded(trust.Role, string, []byte) bool                      { return false }
func (n *network) Member(trust.Role, string) (store.Member, bool)                 { return store.Member{}, false }
func (n *network) RenewLater(context.Context, gate.Peer, func(*apiv1.Credential)) {}
func (n *network) Later(...store.Change)                                          {}
func (n *network) After(_ time.Duration, f func())                                { n.later = append(n.later, f) }
func (n *network) Tell(kind, subject, text string, _ ...string) {
	n.events = append(n.events, kind+" "+subject+": "+text)
}

func (n *network) Ask(_ context.Context, f func()) error {
	f()
	n.Flush()
	return nil
}

func (n *network) Do(_ context.Context, check func() (orders.Change, error)) error {
	c, err := check()
	if err != nil {
		return orders.Error(err)
	}
	if len(c.Records) == 0 || len(c.Says) == 0 {
		n.t.Error("an order saves nothing, or nobody can read who gave it")
	}
	c.Effect()
	n.Flush()
	return nil
}

// wait lets time pass, and does what was to be done by then.
func (n *network) wait(d time.Duration) {
	n.now = n.now.Add(d)
	due := n.later
	n.later = nil
	for _, f := range due {
		f()
	}
	n.Flush()
}

// sites makes east, served by agents e1 and e2, and west, served by w1 and w2.
func (n *network) sites() {
	n.t.Helper()
	for _, s := range []*apiv1.BoostSite{
		{Name: "east", Prefixes: []string{"192.0.2.0/24"}, Agents: []string{"e1", "e2"}},
		{Name: "west", Prefixes: []string{"198.51.100.0/24"}, Agents: []string{"w1", "w2"}},
	} {
		if _, err := n.API().SetBoostSite(n.t.Context(), connect.NewRequest(s)); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *network) allow(e *apiv1.BoostEntry) (*apiv1.BoostEntry, error) {
	answer, err := n.API().AllowBoost(n.t.Context(), connect.NewRequest(e))
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

func (n *network) list() *apiv1.ListBoostResponse {
	n.t.Helper()
	all, err := n.API().ListBoost(n.t.Context(), connect.NewRequest(&apiv1.ListBoostRequest{}))
	if err != nil {
		n.t.Fatal(err)
	}
	return all.Msg
}

func joinOf(name string) *apiv1.BoostJoin {
	last := 1 + strings.Index("e1 e2 w1 w2 xx", name)/3
	return &apiv1.BoostJoin{Name: name, Door: fmt.Sprintf("203.0.113.%d:23731", last), Key: make([]byte, 32), BootId: name, Version: "1"}
}

// join lets an agent in.
func (n *network) join(name string, held ...*apiv1.BoostLane) *stream {
	n.t.Helper()
	j := joinOf(name)
	j.Held = held
	return n.joinAs(j)
}

// joinAs lets an agent in that says this of itself.
func (n *network) joinAs(j *apiv1.BoostJoin) *stream {
	n.t.Helper()
	s := &stream{Session: session.New[apiv1.BoostOrder](n.t.Context(), 100), n: n, name: j.Name}
	n.by = append(n.by, s)
	if no := n.Join(s.Session, j); no != nil {
		n.t.Fatalf("%s is refused: %s", j.Name, no.Reason)
	}
	n.Flush()
	return s
}

// A stream is an agent's, whose orders are read.
type stream struct {
	*Session
	n    *network
	name string
	last *apiv1.BoostLanes // that it was told, and the test has not asked for
}

var errRead = errors.New("all was read")

// told is the last word on its lanes that an agent was told since it was asked last, once all agents have taken what they
// were told; nil: none.
func (s *stream) told() (last *apiv1.BoostLanes) {
	for again := !s.n.byHand; again; {
		again = false
		for _, o := range s.n.by {
			if told := o.applies(); told != nil {
				o.last, again = told, true
			}
		}
	}
	if s.n.byHand {
		s.last = s.read()
	}
	last, s.last = s.last, nil
	return last
}

// read is the last word that has not been read.
func (s *stream) read() (last *apiv1.BoostLanes) {
	end := &apiv1.BoostOrder{}
	s.Send(end)
	_ = s.Write(func(o *apiv1.BoostOrder) error {
		if o == end {
			return errRead
		}
		if l := o.GetLanes(); l != nil {
			last = l
		}
		return nil
	})
	return last
}

// applies has an agent take what it was told last, and returns that.
func (s *stream) applies() *apiv1.BoostLanes {
	s.n.t.Helper()
	told := s.read()
	if told != nil {
		s.n.Report(s.name, s.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Applied{Applied: &apiv1.BoostApplied{Generation: told.Generation}}})
		s.n.Flush()
	}
	return told
}

func near(l *apiv1.BoostLanes) (all []string) {
	for _, x := range l.GetLanes() {
		if !slices.Contains(all, x.Near) {
			all = append(all, x.Near)
		}
	}
	slices.Sort(all)
	return all
}
