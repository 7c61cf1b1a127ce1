package silences

import (
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

var web, wiki = sid.ServiceID{SS: 1, Suffix: 0x10000}, sid.ServiceID{SS: 1, Suffix: 0x10001}

// A network of one host that serves two services, as silences see it.
type network struct {
	others map[sid.ServiceID]bool // who serve it take flows
	waits  map[sid.ServiceID]names.Policy
	told   []sid.Suffix
	later  map[time.Duration]func()
}

func (n *network) Takers(t sid.Triple, _ string) (itself, others bool) {
	return false, n.others[t.Service]
}
func (n *network) ByID(id sid.ServiceID) (names.Record, bool) {
	return names.Record{ID: id, Policy: n.waits[id]}, true
}
func (n *network) Here(string) bool { return true }
func (n *network) Serves(string) map[sid.ServiceID][]sid.Triple {
	return map[sid.ServiceID][]sid.Triple{web: {{Service: web, Proto: sid.TCP, Port: 80}}, wiki: {{Service: wiki, Proto: sid.TCP, Port: 80}}}
}
func (n *network) Gone(_ string, services []*apiv1.ServiceRef) {
	for _, s := range services {
		n.told = append(n.told, sid.Suffix(s.Suffix))
	}
}
func (n *network) After(d time.Duration, f func()) { n.later[d] = f }

func silent() (*Silences, *network) {
	n := &network{others: map[sid.ServiceID]bool{}, waits: map[sid.ServiceID]names.Policy{}, later: map[time.Duration]func(){}}
	for id, ms := range map[sid.ServiceID]uint32{web: 0, wiki: 60_000} {
		n.waits[id] = names.Policy{Patience: ms}
	}
	return New(n, n, n, n), n
}

// Others are told of a service once others serve it, and once only in a silence.
func TestASilenceIsToldWhereOthersServe(t *testing.T) {
	x, n := silent()
	x.Begin("s1")
	if x.Look(); len(n.told) > 0 {
		t.Errorf("told of %v, which nobody else serves", n.told)
	}
	n.others[web] = true
	x.Look()
	x.Look()
	if len(n.told) != 1 || n.told[0] != web.Suffix {
		t.Errorf("told of %v, want the one that others serve, once", n.told)
	}
	x.Begin("s1") // it may have answered meanwhile
	if x.Look(); len(n.told) != 2 {
		t.Errorf("told of %v, want it once more", n.told)
	}
}

// A service that has patience is looked at again when that is over, unless the host has answered.
func TestPatienceIsWaitedFor(t *testing.T) {
	x, n := silent()
	n.others[wiki] = true
	x.Begin("s1")
	if x.Look(); len(n.told) > 0 {
		t.Errorf("told of %v before the patience is over", n.told)
	}
	if since, ok := x.Since("s1"); !ok || since.IsZero() {
		t.Error("a host that is silent is not said to be")
	}
	if n.later[time.Minute] == nil {
		t.Fatalf("looks again after %v, want a minute", n.later)
	}
	x.End("s1")
	n.later[time.Minute]()
	if _, ok := x.Since("s1"); ok || len(n.told) > 0 {
		t.Errorf("told of %v although the host answers", n.told)
	}
}
