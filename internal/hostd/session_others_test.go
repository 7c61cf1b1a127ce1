package hostd

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// An oracle is a controller that knows whether others serve.
type oracle struct {
	apiv1connect.UnimplementedAgentHandler
	there bool
	err   error
	asked []*apiv1.OthersRequest
}

func (o *oracle) Others(_ context.Context, r *connect.Request[apiv1.OthersRequest]) (*connect.Response[apiv1.OthersResponse], error) {
	o.asked = append(o.asked, r.Msg)
	return connect.NewResponse(&apiv1.OthersResponse{There: o.there}), o.err
}

// RoundTrip answers without a network.
func (o *oracle) RoundTrip(r *http.Request) (*http.Response, error) {
	_, handler := apiv1connect.NewAgentHandler(o)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// posted does the next thing that another goroutine wants done.
func (h *fakeHost) posted() { (<-h.d.inbox)() }

func TestASilentServerIsGivenUpOnlyForAnother(t *testing.T) {
	for what, c := range map[string]struct {
		oracle
		want host.Verb
	}{
		"others serve":              {oracle{there: true}, host.Forget},
		"nobody else serves":        {oracle{}, 0},
		"the controller is away":    {oracle{there: true, err: connect.NewError(connect.CodeUnavailable, errors.New("away"))}, 0},
		"the controller starts now": {oracle{err: connect.NewError(connect.CodeUnavailable, errors.New("grace"))}, 0},
	} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		tcp, _ := n.connect(a, b, 1000, sid.TCP)
		delete(n.at, placeB)
		a.d.control.client = &http.Client{Transport: &c.oracle}
		k, _ := a.find(tcp)
		a.engine.Suspect(a.engine.Deadline(), k)
		for len(a.questions) == 0 {
			a.settle(a.engine.Deadline())
		}
		a.posted()
		n.run()
		if got := a.edge.last(tcp); got != c.want {
			t.Errorf("%s: the edge was told to %v, want %v", what, got, c.want)
		}
		if v, there := a.engine.View(k); c.want == 0 && (!there || v.State != session.Bound) {
			t.Errorf("%s: the flow is there: %v, %v; want it bound", what, there, v.State)
		}
		if q := c.asked[0]; len(c.asked) != 1 || q.Port != 80 || q.Proto != uint32(sid.TCP) || sid.Locator(q.Besides) != placeB || q.Suffix != uint64(webID.Suffix) {
			t.Errorf("%s: the controller was asked %v", what, c.asked)
		}
	}
}

// Asked in vain, a flow would look for an instance for seconds.
func TestAFlowWithoutAnInstanceThatCanIsResetAtOnce(t *testing.T) {
	for what, c := range map[string]struct {
		oracle
		want host.Verb
	}{
		"one can":                {oracle{there: true}, host.Block},
		"none can":               {oracle{}, host.Forget},
		"the controller is away": {oracle{err: connect.NewError(connect.CodeUnavailable, errors.New("away"))}, host.Block},
	} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
		a.learn(webID, &apiv1.Policy{Failover: "continue"})
		a.d.control.client = &http.Client{Transport: &c.oracle}
		tcp, _ := n.connect(a, b, 1000, sid.TCP)
		b.cut = true
		a.accused(accusation{locators: []sid.Locator{placeB}})
		n.ask(a)
		k := a.byTuple[tcp]
		a.resume(k, &kick.Socket{State: kick.Established, Sequenced: true, MSS: 1400, AdvMSS: 1400, MSSClamp: 1400, BytesAcked: 1})
		if v, _ := a.engine.View(k); v.State != session.Asking {
			t.Fatalf("%s: the flow is %v, want it asking", what, v.State)
		}
		a.posted() // it asks the controller
		a.posted() // the answer
		n.run()
		if got := a.edge.last(tcp); got != c.want {
			t.Errorf("%s: the edge was told to %v, want %v", what, got, c.want)
		}
		if q := c.asked[0]; q.Port != sid.Port || q.Proto != uint32(sid.UDP) || q.Besides != 0 {
			t.Errorf("%s: the controller was asked %v", what, q)
		}
	}
}
