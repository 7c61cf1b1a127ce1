package registrations

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

// a network of two hosts, as registrations see it.
type network struct {
	services map[sid.ServiceID]names.Record
	at       map[string][]sid.Triple // instances in the plan, by host
	orders   []*apiv1.HostOrder
	said     []string // what happened
	ready    int
	away     bool // daemons have no session
	host     store.Host
	revoked  string // a key
	stored   map[string]store.Change
	later    []func()
}

func (n *network) ByID(id sid.ServiceID) (names.Record, bool) {
	r, ok := n.services[id]
	return r, ok
}

func (n *network) Register(host string, t sid.Triple, _ plan.Readiness) error {
	if !slices.Contains(n.at[host], t) {
		n.at[host] = append(n.at[host], t)
	}
	return nil
}

func (n *network) Withdraw(host string, t sid.Triple) {
	n.at[host] = slices.DeleteFunc(n.at[host], func(x sid.Triple) bool { return x == t })
}

func (n *network) Of(sid.ServiceID) *apiv1.AccessList    { return nil }
func (n *network) Edition(r names.Record) uint64         { return r.Version }
func (n *network) TouchService(sid.ServiceID)            {}
func (n *network) Here(string) bool                      { return true }
func (n *network) Connected(string) bool                 { return !n.away }
func (n *network) Order(_ string, o *apiv1.HostOrder)    { n.orders = append(n.orders, o) }
func (n *network) Locator(string) sid.Locator            { return 1 }
func (n *network) Keys(_ string, shown []byte) [][]byte  { return [][]byte{shown} }
func (n *network) MayTell(string) bool                   { return true }
func (n *network) Unknown(host string, id sid.ServiceID) { n.said = append(n.said, "unknown "+host) }
func (n *network) Record(string) store.Host              { return n.host }
func (n *network) Revoked(key []byte) bool               { return n.revoked == string(key) }
func (n *network) After(_ time.Duration, f func())       { n.later = append(n.later, f) }
func (n *network) Later(changes ...store.Change) {
	for _, c := range changes {
		if n.stored[c.Key()] = c; c.Deletes() {
			delete(n.stored, c.Key())
		}
	}
}
func (n *network) Inc(values ...string) {
	n.said = append(n.said, "refused "+strings.Join(values, " "))
}
func (n *network) Tell(kind, subject, _ string, _ ...string) {
	n.said = append(n.said, kind+" "+subject)
}

// drains are told of none.
type drains struct{}

func (drains) Tell(string, sid.ServiceID) {}

// happened is what happened since it was asked last.
func (n *network) happened() []string {
	said := n.said
	n.said = nil
	return said
}

var web = sid.Triple{Service: sid.ServiceID{SS: 1, Suffix: 0x10000}, Proto: sid.TCP, Port: 80}

func newRegistrations(services ...names.Record) (*Registrations, *network) {
	n := &network{services: map[sid.ServiceID]names.Record{}, at: map[string][]sid.Triple{}, stored: map[string]store.Change{}}
	for _, r := range services {
		n.services[r.ID] = r
	}
	x := New(Config{Plan: n, Services: n, Access: n, Drains: drains{}, Hosts: n, Events: n, Saver: n, Loop: n, Refused: n, Ready: func() { n.ready++ }})
	x.Joined("s1", []byte("key"), false)
	return x, n
}

func registration(t sid.Triple) *apiv1.Registration {
	return &apiv1.Registration{Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port), Ready: true}
}

// What nobody knows yet is kept, and counts when the service is made.
func TestWhatIsRegisteredCountsAsSoonAsItMay(t *testing.T) {
	x, n := newRegistrations()
	x.Take("s1", registration(web))
	if got := n.happened(); len(n.at["s1"]) > 0 || !slices.Equal(got, []string{"unknown s1"}) || n.orders[0].GetRegistrationRefused() == nil {
		t.Errorf("of a service that there is not: %q, %v in the plan, orders %v", got, n.at, n.orders)
	}
	n.services[web.Service] = names.Record{ID: web.Service, Name: "web", Version: 1}
	x.Rejudge(web.Service)
	if got := n.happened(); !slices.Contains(n.at["s1"], web) || !slices.Equal(got, []string{"instance.up web"}) || n.ready != 1 {
		t.Errorf("when it is made: %q, %v in the plan, %d became ready", got, n.at, n.ready)
	}
	if had, _ := x.Missed(web.Service); !had || !x.Of("s1", web).Up {
		t.Error("it has an instance, and it is not known that it had one")
	}
	x.Take("s1", &apiv1.Registration{Ss: web.Service.SS, Suffix: uint64(web.Service.Suffix), Proto: uint32(web.Proto), Port: uint32(web.Port), Reason: "check fails"})
	x.Take("s1", registration(web))
	if got, want := n.happened(), []string{"instance.unready web", "instance.ready web"}; !slices.Equal(got, want) {
		t.Errorf("its readiness: %q, want %q", got, want)
	}
	x.Replace("s1", nil)
	if got := n.happened(); len(n.at["s1"]) > 0 || !slices.Equal(got, []string{"instance.down web"}) {
		t.Errorf("after a set without it: %q, %v in the plan", got, n.at)
	}
}

// Who may not serve hears why, and is no instance from the moment on.
func TestWhoMayNotServeIsNoInstance(t *testing.T) {
	r := names.Record{ID: web.Service, Name: "web", Version: 1}
	x, n := newRegistrations(r)
	x.Take("s1", registration(web))
	n.happened()
	r.Access.Servers = []string{"s2"}
	n.services[r.ID] = r
	x.Rejudge(r.ID)
	x.Rejudge(r.ID)
	want := []string{"instance.down web", "refused server", "instance.refused web", "refused server"}
	if got := n.happened(); len(n.at["s1"]) > 0 || !slices.Equal(got, want) {
		t.Errorf("%q and %v in the plan, want %q: told once, counted twice", got, n.at, want)
	}
	if w := x.Of("s1", web); w.Up || !strings.Contains(w.Refused, "web") {
		t.Errorf("it is %+v", w)
	}
	r.Access = names.Access{Key: make([]byte, 32)}
	n.services[r.ID] = r
	if x.Rejudge(r.ID); !strings.Contains(x.Of("s1", web).Refused, "shows no permit") {
		t.Errorf("without a permit of a service with a key: %+v", x.Of("s1", web))
	}
}

func TestAServiceThatNamesNobodyIsServedByNobodyWhereThatIsWanted(t *testing.T) {
	x, n := newRegistrations(names.Record{ID: web.Service, Name: "web"})
	x.Named = true
	if x.Take("s1", registration(web)); len(n.at["s1"]) > 0 || n.happened()[0] != "refused unnamed" {
		t.Errorf("%v in the plan", n.at)
	}
}

// A session is told each version of what it registered once, in one message for all.
func TestWhatAHostIsToldOfServices(t *testing.T) {
	x, n := newRegistrations()
	for i := range 3 {
		s := web
		s.Service.Suffix += sid.Suffix(i)
		n.services[s.Service] = names.Record{ID: s.Service, Name: fmt.Sprint("web", i), Version: 1}
		x.Take("s1", registration(s))
		s.Port = 81
		x.Take("s1", registration(s))
	}
	told := func() (list []string) {
		x.Flush()
		for _, o := range n.orders {
			for _, p := range o.GetServices().GetEntries() {
				list = append(list, fmt.Sprint(p.Name, " ", p.Gone))
			}
		}
		if len(n.orders) > 1 {
			t.Errorf("%d messages, want one", len(n.orders))
		}
		n.orders = nil
		slices.Sort(list)
		return list
	}
	if got, want := told(), []string{"web0 false", "web1 false", "web2 false"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	x.Changed(web.Service)
	r := n.services[web.Service]
	if got := told(); got != nil {
		t.Errorf("told %q of a version that it knows", got)
	}
	r.Version++
	n.services[r.ID] = r
	x.Changed(r.ID)
	if got := told(); !slices.Equal(got, []string{"web0 false"}) {
		t.Errorf("told %q of another version", got)
	}
	delete(n.services, r.ID)
	x.Removed(r)
	if got := told(); !slices.Equal(got, []string{"web0 true"}) || x.Knows("s1", r.ID) || x.Of("s1", web).Up {
		t.Errorf("told %q of a service that is no more", got)
	}
	x.Joined("s1", []byte("key"), false)
	if x.Knows("s1", r.ID) {
		t.Error("the next session knows what the one before was told")
	}
	if n.away = true; len(x.ByService("s1")) != 3 {
		t.Errorf("it serves %v", x.ByService("s1"))
	}
	if x.Rejudge(web.Service); len(n.orders) > 0 {
		t.Errorf("a host without a session was sent %v", n.orders)
	}
}

// Instances that were proved by one key do not go on under another one, unless that one succeeds it.
func TestAnotherKeyDoesNotServeByTheOthersPermits(t *testing.T) {
	safety.Test(t, safety.Door)
	for succeeds, want := range map[bool]int{false: 1, true: 2} {
		x, n := newRegistrations(names.Record{ID: web.Service, Name: "web"})
		permitted, plain := registration(web), registration(sid.Triple{Service: web.Service, Proto: web.Proto, Port: 81})
		permitted.Permit = []byte("a permit")
		x.Take("s1", permitted)
		x.Take("s1", plain)
		before := x.Challenge("s1")
		x.Joined("s1", []byte("another"), succeeds)
		if got := len(n.at["s1"]); got != want || slices.Equal(before, x.Challenge("s1")) || string(x.Shown("s1")) != "another" {
			t.Errorf("succeeds %v: %d instances go on, want %d, and another challenge", succeeds, got, want)
		}
	}
}

func TestAHostHasABoundedNumberOfInstances(t *testing.T) {
	x, n := newRegistrations()
	h := x.hosts["s1"]
	for i := range Most {
		h.wanted[sid.Triple{Service: sid.ServiceID{SS: 2, Suffix: sid.Suffix(i)}}] = wish{}
	}
	x.Take("s1", registration(web))
	if len(h.wanted) != Most || len(n.orders) != 1 || n.orders[0].GetRegistrationRefused() == nil {
		t.Errorf("%d are kept, orders %v", len(h.wanted), n.orders)
	}
	for _, bad := range []*apiv1.Registration{{}, {Ss: 1, Suffix: 0x10000, Proto: 256, Port: 80}, {Ss: 1, Suffix: 0x10000, Proto: 6, Port: 65536}} {
		if x.Take("s1", bad); len(h.wanted) != Most {
			t.Errorf("%v is kept", bad)
		}
	}
}
