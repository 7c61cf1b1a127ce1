package registry

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/host/checks"
	"scaffold.dev/scaffold/sid"
)

var (
	webID = sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee}
	web   = sid.Triple{Service: webID, Proto: sid.TCP, Port: 80}
)

// aGuest is the one that hosts have.
const aGuest = 3

// A world is all that a registry needs of others: an edge that takes everything, a host with one guest, and a controller
// whose reports are kept.
type world struct {
	admitted map[sid.Triple]bool
	judged   map[sid.Triple]host.Judgement
	adopted  bool
	users    map[uint64]uint32   // by cookie
	devices  map[uint64]uint32   // that sockets are bound to, by cookie
	always   map[sid.Triple]bool // admitted whether or not a socket listens
	vrf      string
	reports  []*apiv1.HostReport
	away     bool // the controller
}

// in makes a registry in the world, whose loop is the test.
func in(t *testing.T, w *world, log io.Writer) *Registry {
	t.Helper()
	if w.admitted == nil {
		w.admitted = map[sid.Triple]bool{}
	}
	w.judged, w.users, w.always = map[sid.Triple]host.Judgement{}, map[uint64]uint32{}, map[sid.Triple]bool{}
	servers, err := ParseServers(nil)
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := checks.ParseAllowed([]string{"db=true"})
	if err != nil {
		t.Fatal(err)
	}
	r := New(t.Context(), Config{
		Log: slog.New(slog.NewTextHandler(log, nil)), Post: func(f func()) { f() }, Call: func(_ context.Context, f func()) bool { f(); return true },
		Servers: servers, Allowed: allowed, Place: w, Namespaces: w, Controller: w, Permits: w, Flows: w,
	})
	r.EdgeOpened(w)
	return r
}

// listens is a socket of root's on the web's address.
func listens(cookie uint64) sockets.Event {
	return sockets.Event{Kind: sockets.Register, Cookie: cookie, Addr: sid.DefaultSpace().ServiceAddr(webID), Proto: sid.TCP, Port: 80}
}

// last is what the controller was told last of the web.
func (w *world) last(t *testing.T) *apiv1.Registration {
	t.Helper()
	for i := len(w.reports) - 1; i >= 0; i-- {
		for _, g := range append(w.reports[i].GetDelta().GetEntries(), w.reports[i].GetSnapshot().GetEntries()...) {
			if g.Port == uint32(web.Port) {
				return g
			}
		}
	}
	t.Fatalf("the controller was told nothing of %v: %v", web, w.reports)
	return nil
}

func (w *world) Space() sid.Space { return sid.DefaultSpace() }
func (w *world) Adopted() bool    { return w.adopted }
func (w *world) Admitted() (all []sid.Triple, err error) {
	for t := range w.admitted {
		all = append(all, t)
	}
	return all, nil
}
func (w *world) Admit(t sid.Triple) error { w.admitted[t], w.always[t] = true, true; return nil }
func (w *world) AdmitListening(t sid.Triple) error {
	w.admitted[t], w.always[t] = true, false
	return nil
}
func (w *world) Withdraw(t sid.Triple) error                         { delete(w.admitted, t); return nil }
func (w *world) Judge(t sid.Triple, j host.Judgement) error          { w.judged[t] = j; return nil }
func (w *world) SweepJudgements(func(sid.Triple) bool) error         { return nil }
func (w *world) SetOwners(sid.Triple, []uint16) error                { return nil }
func (w *world) SweepOwners(func(sid.Triple) bool) error             { return nil }
func (w *world) SetService(sid.ServiceID, host.Policy) error         { return nil }
func (w *world) Access(sid.ServiceID) resolve.AccessList             { return nil }
func (w *world) SetAccess(sid.ServiceID, resolve.AccessList) error   { return nil }
func (w *world) LeadsHere(int) bool                                  { return true }
func (w *world) GivesToUnbound(sid.Proto) bool                       { return true }
func (w *world) VRF() string                                         { return w.vrf }
func (w *world) Guest(number uint16) (Guest, bool)                   { return Guest{}, number == aGuest }
func (w *world) At(uint16) (identity netip.Addr, n checks.Namespace) { return identity, n }
func (w *world) Device(uint16) string                                { return "" }
func (w *world) Watched() []*sockets.Host                            { return nil }
func (w *world) Connected() bool                                     { return !w.away }
func (w *world) Send(r *apiv1.HostReport)                            { w.reports = append(w.reports, r) }
func (w *world) Show(*apiv1.Registration, sid.Triple)                {}
func (w *world) Orphaned(sid.Triple, uint64)                         {}
func (w *world) CanResume(sid.Triple) bool                           { return false }
func (w *world) Learn(sid.ServiceID, *apiv1.Policy)                  {}
func (w *world) Bar(sid.ServiceID, func(sid.Locator) bool)           {}

func (w *world) Each(proto sid.Proto, states uint32, port uint16, f func(sockets.DiagSocket)) error {
	return w.In(0, proto, states, port, f)
}

func (w *world) In(_ uint16, _ sid.Proto, _ uint32, _ uint16, f func(sockets.DiagSocket)) error {
	for cookie, user := range w.users {
		f(sockets.DiagSocket{Cookie: cookie, UID: user, Device: w.devices[cookie]})
	}
	return nil
}
