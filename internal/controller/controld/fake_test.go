package controld

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/sid"
)

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// hangUpStream ends a stream at once. Ending its context alone tells the server nothing while the
// request's body waits for more.
func hangUpStream(s interface {
	CloseRequest() error
	CloseResponse() error
}) {
	_ = s.CloseRequest()
	_ = s.CloseResponse()
}

// A fakeRouter applies what it is told as a router should: what a snapshot does not name is gone at
// its commit, and not before.
type fakeRouter struct {
	t      testing.TB
	stream *connect.BidiStreamForClient[apiv1.RouterReport, apiv1.RouterOrder]
	cancel context.CancelFunc

	sending sync.Mutex
	idle    atomic.Bool // applies nothing

	mu        sync.Mutex
	joined    *apiv1.RouterJoined
	refused   *apiv1.Refused
	held      routerTables
	next      *routerTables // a snapshot on its way
	snapshots int
	messages  []*apiv1.Rules
	ended     bool
	hook      func(*apiv1.RouterOrder) // called with each order once it is taken
}

type routerTables struct {
	routes      map[string]*apiv1.Route
	services    map[sid.ServiceID]*apiv1.ServiceRule
	resolutions map[sid.Triple][]*apiv1.Target
	probes      map[uint64]*apiv1.Probe
	redirects   map[sid.Locator]sid.Locator
	gone        map[sid.Locator]bool
	sources     map[source]bool
	filters     bool
}

type source struct {
	port    string
	locator sid.Locator
}

func newRouterTables() routerTables {
	return routerTables{map[string]*apiv1.Route{}, map[sid.ServiceID]*apiv1.ServiceRule{}, map[sid.Triple][]*apiv1.Target{}, map[uint64]*apiv1.Probe{}, map[sid.Locator]sid.Locator{}, map[sid.Locator]bool{}, map[source]bool{}, false}
}

// router joins a service router and waits for its first snapshot.
func (c *controller) router(name string, links ...*apiv1.Neighbour) *fakeRouter {
	c.t.Helper()
	r := c.joinRouter(&apiv1.RouterJoin{Name: name, Service: true, BootId: "boot-" + name}, links...)
	c.await(name+" has its snapshot", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.snapshots > 0 })
	return r
}

// joinRouter has its answer when it returns: a host that joins next, by another stream, would be refused for a router
// that has not joined.
func (c *controller) joinRouter(j *apiv1.RouterJoin, links ...*apiv1.Neighbour) *fakeRouter {
	c.t.Helper()
	r := c.silentRouter(j)
	r.sending.Lock()
	_ = r.stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: &apiv1.Neighbours{Links: links}}}) // fails where it is refused
	r.sending.Unlock()
	c.await("router "+j.Name+" has an answer", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.joined != nil || r.refused != nil || r.ended })
	return r
}

// silentRouter joins and says no more.
func (c *controller) silentRouter(j *apiv1.RouterJoin) *fakeRouter {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &fakeRouter{t: c.t, stream: c.agent.Router(ctx), cancel: cancel, held: newRouterTables()}
	r.cancel = func() { cancel(); hangUpStream(r.stream) }
	c.t.Cleanup(r.cancel)
	r.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: j}})
	go r.read()
	return r
}

func (r *fakeRouter) report(m *apiv1.RouterReport) {
	r.t.Helper()
	r.sending.Lock()
	defer r.sending.Unlock()
	if err := r.stream.Send(m); err != nil {
		r.t.Fatal(err)
	}
}

// links reports the links to other routers.
func (r *fakeRouter) links(links ...*apiv1.Neighbour) {
	r.t.Helper()
	r.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: &apiv1.Neighbours{Links: links}}})
}

// way is the next hop that the router has for the prefix, "" where it has none.
func (r *fakeRouter) way(prefix string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.routes[prefix].GetVia()
}

// state reports what probes of a host say.
func (r *fakeRouter) state(l sid.Locator, state string) {
	r.t.Helper()
	r.states(state, l)
}

// states reports the same of several hosts at once.
func (r *fakeRouter) states(state string, at ...sid.Locator) {
	r.t.Helper()
	var hosts []*apiv1.HostState
	for _, l := range at {
		hosts = append(hosts, &apiv1.HostState{Locator: uint64(l), State: state, Missed: 3, Reason: "probes"})
	}
	r.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Hosts{Hosts: &apiv1.HostStates{Hosts: hosts}}})
}

// heard waits until the controller has worked on all that this router has reported so far.
func (r *fakeRouter) heard(c *controller) {
	r.t.Helper()
	const mark = 1<<40 + 7 // no test counts so far
	r.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Counters{Counters: &apiv1.RouterCounters{Counters: map[string]uint64{"resolved": mark}}}})
	c.await("the controller has heard the router", func() bool {
		list, err := c.admin.ListRouters(r.t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
		if err != nil {
			r.t.Fatal(err)
		}
		return slices.ContainsFunc(list.Msg.Routers, func(x *apiv1.Router) bool { return x.Resolved == mark })
	})
}

func (r *fakeRouter) read() {
	for {
		o, err := r.stream.Receive()
		r.mu.Lock()
		r.ended = err != nil
		if err == nil {
			r.take(o)
			if r.hook != nil {
				r.hook(o)
			}
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
		r.acknowledge(o)
	}
}

// acknowledge reports rules as applied.
func (r *fakeRouter) acknowledge(o *apiv1.RouterOrder) {
	r.mu.Lock()
	generation, more := o.GetRules().GetGeneration(), r.next != nil
	r.mu.Unlock()
	if c := o.GetCommit(); c != nil {
		generation = c.Generation
	}
	if generation == 0 || more || r.idle.Load() {
		return
	}
	r.sending.Lock()
	defer r.sending.Unlock()
	_ = r.stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: &apiv1.Applied{Generation: generation}}}) // fails at the end
}

func (r *fakeRouter) take(o *apiv1.RouterOrder) {
	switch o := o.Order.(type) {
	case *apiv1.RouterOrder_Joined:
		r.joined = o.Joined
	case *apiv1.RouterOrder_Refused:
		r.refused = o.Refused
	case *apiv1.RouterOrder_Begin:
		t := newRouterTables()
		r.next = &t
	case *apiv1.RouterOrder_Rules:
		r.messages = append(r.messages, o.Rules)
		if r.next != nil {
			r.next.apply(o.Rules)
		} else {
			r.held.apply(o.Rules)
		}
	case *apiv1.RouterOrder_Commit:
		r.held, r.next = *r.next, nil
		r.held.filters = o.Commit.Filter
		r.snapshots++
	}
}

func (t *routerTables) apply(m *apiv1.Rules) {
	for _, x := range m.Routes {
		set(t.routes, x.Prefix, x, x.Gone)
	}
	for _, x := range m.Services {
		set(t.services, sid.ServiceID{SS: x.Ss, Suffix: sid.Suffix(x.Suffix)}, x, x.Gone)
	}
	for _, x := range m.Probes {
		set(t.probes, x.Locator, x, x.Gone)
	}
	for _, x := range m.Redirects {
		set(t.redirects, sid.Locator(x.From), sid.Locator(x.To), x.Gone)
	}
	for _, x := range m.Sources {
		set(t.sources, source{x.Port, sid.Locator(x.Locator)}, true, x.Gone)
	}
	for _, x := range m.Gone {
		set(t.gone, sid.Locator(x.Locator), true, x.Back)
	}
	for _, x := range m.Resolutions {
		triple := sid.Triple{Service: sid.ServiceID{SS: x.Ss, Suffix: sid.Suffix(x.Suffix)}, Proto: sid.Proto(x.Proto), Port: uint16(x.Port)}
		set(t.resolutions, triple, x.Targets, len(x.Targets) == 0)
	}
}

func set[K comparable, V any](m map[K]V, k K, v V, gone bool) {
	m[k] = v
	if gone {
		delete(m, k)
	}
}

// targets are the weights of a triple by locator, as the router has them now.
func (r *fakeRouter) targets(t sid.Triple) map[sid.Locator]uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := make(map[sid.Locator]uint32)
	for _, x := range r.held.resolutions[t] {
		m[sid.Locator(x.Locator)] = x.Weight
	}
	return m
}

// has waits until the router resolves the triple so.
func (r *fakeRouter) has(t sid.Triple, want map[sid.Locator]uint32) {
	r.t.Helper()
	await(r.t, fmt.Sprintf("%v resolves to %v", t, want), func() bool { return fmt.Sprint(r.targets(t)) == fmt.Sprint(want) })
}

// route reports whether the router has one to the locator.
func (r *fakeRouter) route(l sid.Locator) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.routes[l.Prefix().String()] != nil
}

// redirected is where the router sends on what comes for the locator, 0 where it does not.
func (r *fakeRouter) redirected(from sid.Locator) sid.Locator {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.redirects[from]
}

// tellsGone reports whether the router tells senders that nobody is at the locator.
func (r *fakeRouter) tellsGone(l sid.Locator) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.gone[l]
}

// A fakeHost notes what it is told.
type fakeHost struct {
	t      testing.TB
	name   string
	stream *connect.BidiStreamForClient[apiv1.HostReport, apiv1.HostOrder]
	cancel context.CancelFunc

	mu      sync.Mutex
	orders  []*apiv1.HostOrder
	joined  *apiv1.Joined
	refused *apiv1.Refused
	ended   bool
	hook    func(*apiv1.HostOrder) // called with each order
}

// host joins a host and waits until it is admitted.
func (c *controller) host(name, router string) *fakeHost {
	c.t.Helper()
	h := c.joinHost(join(name, router))
	c.await(name+" has joined", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.joined != nil })
	return h
}

func join(name, router string) *apiv1.Join {
	return &apiv1.Join{
		Name: name, BootId: "boot-" + name, Netns: "1",
		Attachment: &apiv1.Attachment{Router: router, Port: "to-" + name, LinkLocal: "fe80::1", Mac: []byte{2, 0, 0, 0, 0, name[len(name)-1]}},
	}
}

func (c *controller) joinHost(j *apiv1.Join) *fakeHost { return c.hostOver(c.agent, j) }

// hostOver is joinHost by another way to the controller.
func (c *controller) hostOver(agent apiv1connect.AgentClient, j *apiv1.Join) *fakeHost {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &fakeHost{t: c.t, name: j.Name, stream: agent.Host(ctx), cancel: cancel}
	h.cancel = func() { cancel(); hangUpStream(h.stream) }
	c.t.Cleanup(h.cancel)
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: j}})
	go h.read()
	return h
}

func (h *fakeHost) report(m *apiv1.HostReport) {
	h.t.Helper()
	if err := h.stream.Send(m); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fakeHost) read() {
	for {
		o, err := h.stream.Receive()
		h.mu.Lock()
		h.ended = err != nil
		if err == nil {
			h.orders = append(h.orders, o)
			if h.hook != nil {
				h.hook(o)
			}
			if o.GetJoined() != nil {
				h.joined = o.GetJoined()
			}
			if o.GetRefused() != nil {
				h.refused = o.GetRefused()
			}
		}
		h.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (h *fakeHost) over() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.ended }

// told waits for an order.
func (h *fakeHost) told(what string, is func(*apiv1.HostOrder) bool) {
	h.t.Helper()
	await(h.t, h.name+" is told "+what, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, o := range h.orders {
			if is(o) {
				return true
			}
		}
		return false
	})
}

func (h *fakeHost) locator() sid.Locator {
	h.mu.Lock()
	defer h.mu.Unlock()
	return parseLocator(h.joined.Locator)
}

func web(id sid.ServiceID) sid.Triple { return sid.Triple{Service: id, Proto: sid.TCP, Port: 80} }

func registration(t sid.Triple, ready bool) *apiv1.Registration {
	return &apiv1.Registration{Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port), Ready: ready}
}

// serves reports the full set of what the host serves.
func (h *fakeHost) serves(triples ...sid.Triple) {
	h.t.Helper()
	m := &apiv1.Registrations{}
	for _, t := range triples {
		m.Entries = append(m.Entries, registration(t, true))
	}
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Snapshot{Snapshot: m}})
}

func (h *fakeHost) delta(entries ...*apiv1.Registration) {
	h.t.Helper()
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Delta{Delta: &apiv1.Registrations{Entries: entries}}})
}
