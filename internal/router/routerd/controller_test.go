package routerd

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

var space = sid.DefaultSpace()

// A fakeController accepts routers and says what the test tells it to.
type fakeController struct {
	apiv1connect.UnimplementedAgentHandler
	endpoint string
	sessions chan *fakeSession
}

// A fakeSession is the controller's end of one stream.
type fakeSession struct {
	t       *testing.T
	join    *apiv1.RouterJoin
	orders  chan *apiv1.RouterOrder // sent by the handler, which owns the stream
	reports chan *apiv1.RouterReport
	end     chan struct{}
}

// newController serves on the listener until the test ends.
func newController(t *testing.T, l net.Listener) *fakeController {
	c := &fakeController{endpoint: "http://" + l.Addr().String(), sessions: make(chan *fakeSession, 8)}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewAgentHandler(c))
	go api.Serve(t.Context(), mux, l)
	return c
}

func (c *fakeController) Router(ctx context.Context, stream *connect.BidiStream[apiv1.RouterReport, apiv1.RouterOrder]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	s := &fakeSession{join: first.GetJoin(), orders: make(chan *apiv1.RouterOrder, 100), reports: make(chan *apiv1.RouterReport, 1000), end: make(chan struct{})}
	c.sessions <- s
	go func() {
		for {
			r, err := stream.Receive()
			if err != nil {
				close(s.reports)
				return
			}
			s.reports <- r
		}
	}()
	for {
		select {
		case o := <-s.orders:
			if err := stream.Send(o); err != nil {
				return err
			}
		case <-s.end:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// accept waits for a router and gives it the locator.
func (c *fakeController) accept(t *testing.T, own sid.Locator) *fakeSession {
	t.Helper()
	return c.acceptWith(t, own, 3, 300)
}

// acceptWith has hosts suspected after so many probes without an answer, one each 10 ms, and gone after so long.
func (c *fakeController) acceptWith(t *testing.T, own sid.Locator, suspectAfter, goneAfterMs uint32) *fakeSession {
	t.Helper()
	s := nstest.Receive(t, "the log of routerd: it did not join", c.sessions)
	s.t = t
	s.order(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Joined{Joined: &apiv1.RouterJoined{Network: "test", Locator: own.String(),
		Space:           &apiv1.Space{Services: space.Services.String(), As: space.AS.String(), Identities: space.Identities.String()},
		ProbeIntervalMs: 10, SuspectAfter: suspectAfter, GoneAfterMs: goneAfterMs}}})
	return s
}

func (s *fakeSession) order(o *apiv1.RouterOrder) { s.orders <- o }

// snapshot sends rules as a whole table and waits until they hold.
func (s *fakeSession) snapshot(generation uint64, rules *apiv1.Rules) {
	s.t.Helper()
	s.order(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Begin{Begin: &apiv1.SnapshotBegin{Generation: generation}}})
	s.order(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: rules}})
	s.order(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Commit{Commit: &apiv1.Commit{Generation: generation}}})
	s.applied(generation)
}

// delta sends rules and waits until they hold.
func (s *fakeSession) delta(rules *apiv1.Rules) {
	s.t.Helper()
	s.order(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: rules}})
	s.applied(rules.Generation)
}

func (s *fakeSession) applied(generation uint64) {
	s.t.Helper()
	s.await(fmt.Sprintf("generation %d applied", generation), func(r *apiv1.RouterReport) bool {
		a := r.GetApplied()
		if a != nil && a.Error != "" {
			s.t.Fatalf("generation %d: %s", a.Generation, a.Error)
		}
		return a.GetGeneration() == generation && a != nil
	})
}

// await reads reports up to one that match wants.
func (s *fakeSession) await(what string, match func(*apiv1.RouterReport) bool) {
	s.t.Helper()
	for {
		if match(nstest.Receive(s.t, "routerd's log: no report of "+what, s.reports)) {
			return
		}
	}
}

// state waits for a report of the host.
func (s *fakeSession) state(l sid.Locator, want liveness.State, reason string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%v as %s", l, want), func(r *apiv1.RouterReport) bool {
		for _, h := range r.GetHosts().GetHosts() {
			if h.Locator == uint64(l) && h.State == string(want) && h.Reason == reason {
				return true
			}
		}
		return false
	})
}

// neighbour waits for a report of the link.
func (s *fakeSession) neighbour(want *apiv1.Neighbour) (via string) {
	s.t.Helper()
	s.await(fmt.Sprintf("link %v", want), func(r *apiv1.RouterReport) bool {
		for _, n := range r.GetNeighbours().GetLinks() {
			if n.Port == want.Port && n.Peer == want.Peer && n.PeerPort == want.PeerPort && n.Up == want.Up && n.Reason == want.Reason {
				via = n.Via
				return true
			}
		}
		return false
	})
	return via
}
