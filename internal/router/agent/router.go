package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/core/plan"
)

// SwitchBoot begins the boot id of an OpenFlow switch, which has no daemon: a controller speaks for it.
const SwitchBoot = "openflow-"

// A Session is one stream to the controller that has joined. The owner's loop sends.
type Session = member.Session[*apiv1.RouterReport]

// A Router keeps a stream to the controller in a router's name. Its functions are called by way of Call, in
// the loop of the one who owns the router's state.
type Router struct {
	Controllers *api.Controllers    // where they are; the relay of hosts goes to the same
	Dial        api.DialFunc        // nil: from this process's namespace
	Credentials *member.Credentials // nil: in the clear
	Log         *slog.Logger
	Call        func(func()) bool // runs a function in the loop and waits for it; false after the loop's end
	Join        func() *apiv1.RouterJoin
	Joined      func(*Session, *apiv1.RouterJoined) error           // an error ends the session
	Rules       func(generation uint64, r plan.Rules, unread error) // unread names what of them could not be read
	Order       func(*apiv1.RouterOrder)                            // any other
	Parted      func(*Session)
	Health      func(error) // why there is no session; called from any goroutine

	mu     sync.Mutex
	joined string   // the endpoint of the session
	in     *Session // nil while there is none
}

// Converse keeps a session with the controller until ctx ends, and says once why there is none.
func (r *Router) Converse(ctx context.Context) {
	r.member().Stay(ctx, member.Stay{
		Credentials: r.Credentials, Dial: r.Dial, Log: r.Log, Meanwhile: "forwarding goes on", Failed: r.Health,
		Tries: func(endpoint string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.joined = endpoint
		},
	}, r.ask)
}

type asRouter = member.Member[*apiv1.RouterReport, *apiv1.RouterOrder, *apiv1.RouterJoined]

// member is the router as its controllers know it.
func (r *Router) member() *asRouter {
	return &asRouter{
		Who: "this router", Controllers: r.Controllers, Epoch: (*apiv1.RouterJoined).GetEpoch,
		Open: func(ctx context.Context, client *http.Client, base string) member.Stream[*apiv1.RouterReport, *apiv1.RouterOrder] {
			return apiv1connect.NewAgentClient(client, base).Router(ctx)
		},
		Joined: r.begin, Order: r.obey,
		Parted: func(s *Session) {
			r.session(nil)
			r.Call(func() { r.Parted(s) })
		},
	}
}

// ask is the first report of a session.
func (r *Router) ask(context.Context) (*apiv1.RouterReport, error) {
	var join *apiv1.RouterJoin
	if !r.Call(func() { join = r.Join() }) {
		return nil, context.Canceled
	}
	speaks := versions.Agent()
	join.Speaks = &apiv1.Versions{From: speaks.From, To: speaks.To}
	return &apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: join}}, nil
}

func (r *Router) begin(_ context.Context, s *Session, j *apiv1.RouterJoined) error {
	r.session(s)
	if j.Trust == "open" {
		r.Log.Warn("the network is open: anybody who reaches it may join it (trust: open)", "network", j.Network)
	}
	r.renew(j.Credential)
	var err error
	if !r.Call(func() { err = r.Joined(s, j) }) {
		return errors.New("this router ends")
	}
	return err
}

// obey has the router do what the controller orders.
func (r *Router) obey(order *apiv1.RouterOrder) error {
	then := func() { r.Order(order) }
	switch o := order.Order.(type) {
	case *apiv1.RouterOrder_Credential:
		r.renew(o.Credential)
		return nil
	case *apiv1.RouterOrder_Rules:
		rules, err := Decode(o.Rules) // here: the loop has packets and probes to look after
		then = func() { r.Rules(o.Rules.GetGeneration(), rules, err) }
	}
	if !r.Call(then) {
		return context.Canceled
	}
	return nil
}

// session notes the one that runs; nil: none.
func (r *Router) session(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in = s
}

// renew keeps a credential that the controller sent.
func (r *Router) renew(fresh *apiv1.Credential) {
	if r.Credentials == nil || fresh == nil {
		return
	}
	if err := r.Credentials.Take(fresh); err != nil {
		r.Log.Error("credential", "error", err)
	}
}
