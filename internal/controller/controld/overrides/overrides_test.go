package overrides

import (
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// a network of one service and one host, as overrides see it.
type network struct {
	told   map[string]string
	orders []string
	behind bool
	later  []func()
}

var web = sid.ServiceID{SS: 1, Suffix: 0x10000}

func (n *network) SetOverride(sid.ServiceID, string, plan.Override) {}
func (n *network) ByID(id sid.ServiceID) (names.Record, bool) {
	return names.Record{ID: id}, id == web
}
func (n *network) Connected(host string) bool                { return host == "s1" }
func (n *network) Serves(host string, id sid.ServiceID) bool { return host == "s1" && id == web }
func (n *network) Told(host string, _ sid.ServiceID) string  { return n.told[host] }
func (n *network) Tell(host string, _ sid.ServiceID, mode string) {
	n.told[host] = mode
	n.orders = append(n.orders, mode)
}
func (n *network) Generation() uint64              { return 7 }
func (n *network) Behind(upTo uint64) bool         { return upTo == 7 && n.behind }
func (n *network) After(_ time.Duration, f func()) { n.later = append(n.later, f) }

func newOverrides() (*Overrides, *network) {
	n := &network{told: map[string]string{}}
	return New(Config{Plan: n, Services: n, Hosts: n, Routers: n, Loop: n}), n
}

// A host goes on to serve at once, and is drained when no router sends it anything new any more.
func TestAHostIsToldOfADrainAfterTheRouters(t *testing.T) {
	x, n := newOverrides()
	n.behind = true
	x.Set(store.Override{Service: web, Host: "s1", Override: plan.Override{Drain: true}, Mode: names.Shed})
	x.Tell("s1", web)
	if x.Flush(); len(n.orders) > 0 {
		t.Errorf("told %q while a router has the rules of before", n.orders)
	}
	n.behind = false
	if x.Flush(); !slices.Equal(n.orders, []string{names.Shed}) {
		t.Errorf("told %q, want the mode once", n.orders)
	}
	x.Flush()
	x.Set(store.Override{Service: web, Host: "s1"})
	if x.Tell("s1", web); !slices.Equal(n.orders, []string{names.Shed, ""}) {
		t.Errorf("told %q, want the end of the drain at once", n.orders)
	}
}

// A router that does not apply its rules holds a drain up for a while, and no longer.
func TestARouterThatIsStuckDoesNotKeepADrainFromItsHost(t *testing.T) {
	x, n := newOverrides()
	n.behind = true
	x.Set(store.Override{Service: web, Host: "s1", Override: plan.Override{Drain: true}, Mode: names.Shed})
	x.Tell("s1", web)
	x.Flush()
	for _, f := range n.later {
		f()
	}
	if x.Flush(); !slices.Equal(n.orders, []string{names.Shed}) {
		t.Errorf("told %q, want the mode once the patience is over", n.orders)
	}
}

// A host or service that is no more leaves nothing behind.
func TestWhatIsForgottenIsSaidOfNobody(t *testing.T) {
	x, _ := newOverrides()
	for _, host := range []string{"s1", "s2"} {
		x.Set(store.Override{Service: web, Host: host, Override: plan.Override{Set: true, Weight: 3}})
	}
	if gone := x.ForgetHost("s1"); len(gone) != 1 || gone[0].Host != "s1" {
		t.Errorf("forgotten: %v", gone)
	}
	if w := x.Weights(web); len(w) != 1 || w["s2"] != 3 {
		t.Errorf("weights %v, want that of s2", w)
	}
	if x.ForgetService(web); len(x.OfService(web)) > 0 || x.Of(web, "s2").Set {
		t.Error("something is said of hosts of a service that is no more")
	}
}
