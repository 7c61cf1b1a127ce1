package services

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// a network of the hosts s1 and s2, as services see it. It notes what they tell others.
type network struct {
	told      []string
	keyed     bool
	instances []plan.Instance
	capable   []string
	history   []*apiv1.Event
	overrides map[string]store.Override
	refused   int
}

func (n *network) note(format string, args ...any) {
	n.told = append(n.told, fmt.Sprintf(format, args...))
}

func (n *network) SetService(r names.Record)               { n.note("plan %d", r.Policy.Weight) }
func (n *network) RemoveService(sid.ServiceID)             { n.note("plan without") }
func (n *network) Instances(sid.ServiceID) []plan.Instance { return n.instances }
func (n *network) Capable(sid.ServiceID) []string          { return n.capable }
func (n *network) Watch(names.Record)                      { n.note("watch") }
func (n *network) TouchService(sid.ServiceID)              {}
func (n *network) Move()                                   {}
func (n *network) Rejudge(sid.ServiceID)                   { n.note("rejudge") }
func (n *network) Replaced(sid.ServiceID)                  { n.note("replaced") }
func (n *network) Removed(names.Record)                    { n.note("removed") }

// At says that s1 has 2001:db8::1.
func (n *network) At(addr netip.Addr) string {
	if addr == netip.MustParseAddr("2001:db8::1") {
		return "s1"
	}
	return ""
}

func (n *network) Known(host string) bool                      { return host == "s1" || host == "s2" }
func (n *network) Flows(string, sid.Triple) uint32             { return 3 }
func (n *network) ClientFlows(string) uint32                   { return 7 }
func (n *network) ForgetService(sid.ServiceID)                 {}
func (n *network) Tell(host string, _ sid.ServiceID)           { n.note("tell %s", host) }
func (n *network) Of(_ sid.ServiceID, h string) store.Override { return n.overrides[h] }
func (n *network) Set(o store.Override)                        { n.overrides[o.Host] = o }
func (n *network) AskedFor(sid.ServiceID)                      { n.note("asked") }
func (n *network) Inc(...string)                               { n.refused++ }

func (n *network) OfService(sid.ServiceID) (list []store.Override) {
	for _, o := range n.overrides {
		list = append(list, o)
	}
	return list
}

func (n *network) Last(int, func(*apiv1.Event) bool) []*apiv1.Event { return n.history }

func (n *network) ByService(string) map[sid.ServiceID][]sid.Triple {
	m := map[sid.ServiceID][]sid.Triple{}
	for _, i := range n.instances {
		m[i.Triple.Service] = []sid.Triple{i.Triple}
	}
	return m
}

// SoleServer says that s1 is the last where it serves alone.
func (n *network) SoleServer(_ sid.ServiceID, host string) (sid.Triple, bool) {
	return sid.Triple{}, len(n.instances) == 1 && n.instances[0].Host == host
}

func newServices() (*Services, *network) {
	n := &network{keyed: true, overrides: map[string]store.Override{}}
	return New(names.NewTable("svc"), Config{
		Space: sid.DefaultSpace(), Domain: "svc", Keyed: func() bool { return n.keyed }, Plan: n, Access: n, Overrides: n, Registrations: n, Hosts: n, History: n, RefusedDrains: n,
	}), n
}

// has makes a service and returns its record.
func (x *Services) has(t *testing.T, n *network, m *apiv1.CreateServiceRequest) names.Record {
	t.Helper()
	c, err := x.Create(m)
	if err != nil {
		t.Fatal(err)
	}
	c.Effect()
	n.told = nil
	r, err := x.Named(c.Says[0].Subject)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func refused(t *testing.T, what string, err, want error, says string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want %v with %q", what, err, want, says)
	}
}

// Nothing follows from an order before its effect; then the plan, the lists and the hosts know it.
func TestWhatFollowsFromAService(t *testing.T) {
	x, n := newServices()
	c, err := x.Create(&apiv1.CreateServiceRequest{Name: "web.svc", Policy: &apiv1.Policy{Weight: 7}, Access: &apiv1.Access{Allow: []string{"service:db.svc"}}})
	if err != nil || x.Has("web") || n.told != nil || len(c.Records) != 1 || c.Says[0].Kind != "service.create" {
		t.Fatalf("%v: %+v, told %q", err, c, n.told)
	}
	c.Effect()
	if r := x.All()[0]; !r.ID.Valid() || r.ID.SS != ownSS || r.Name != "web" || r.Access.Allow[0] != "service:db" {
		t.Errorf("made %+v", r)
	}
	if want := []string{"plan 7", "watch", "rejudge"}; !x.Has("web") || !slices.Equal(n.told, want) {
		t.Errorf("told %q, want %q", n.told, want)
	}
	_, err = x.Create(&apiv1.CreateServiceRequest{Name: "web"})
	refused(t, "another one of the name", err, names.ErrExists, "web")
	c, err = x.UpdatePolicy(&apiv1.UpdatePolicyRequest{Name: x.Address(x.All()[0].ID), Policy: &apiv1.Policy{Weight: 9}, Version: 1})
	if n.told = nil; err != nil {
		t.Fatal(err)
	}
	if c.Effect(); !slices.Equal(n.told, []string{"plan 9", "replaced"}) {
		t.Errorf("another policy: told %q: nobody is judged anew", n.told)
	}
	n.overrides["s1"] = store.Override{Host: "s1", Override: plan.Override{Set: true}}
	n.instances = []plan.Instance{{Host: "s1"}}
	_, err = x.RemoveService(&apiv1.RemoveServiceRequest{Name: "web"})
	refused(t, "removing what serves", err, orders.ErrConflict, "1 instance")
	c, err = x.RemoveService(&apiv1.RemoveServiceRequest{Name: x.All()[0].ID.String(), Force: true})
	if n.told = nil; err != nil || len(c.Records) != 3 {
		t.Fatalf("%v: %d records, want the service, that it was served, and an override", err, len(c.Records))
	}
	if c.Effect(); x.Has("web") || !slices.Contains(n.told, "removed") || !slices.Contains(n.told, "plan without") {
		t.Errorf("told %q", n.told)
	}
}

// Nobody replaces what he has not read.
func TestWhatSomebodyElseChangedIsNotReplaced(t *testing.T) {
	x, n := newServices()
	r := x.has(t, n, &apiv1.CreateServiceRequest{Name: "web"})
	n.history = []*apiv1.Event{{Subject: "web", Text: "policy changed", Attrs: map[string]string{"version": "2"}, Time: "noon", By: &apiv1.Actor{Name: "ann"}}}
	r.Version = 2
	x.Set(r, false)
	_, err := x.UpdatePolicy(&apiv1.UpdatePolicyRequest{Name: "web", Version: 1})
	refused(t, "one read version 1", err, orders.ErrChanged, "ann changed policy changed at noon")
	_, err = x.UpdatePolicy(&apiv1.UpdatePolicyRequest{Name: "web", Version: 3})
	refused(t, "one read version 3", err, orders.ErrChanged, "made anew")
	_, err = x.UpdatePolicy(&apiv1.UpdatePolicyRequest{Name: "web"})
	refused(t, "one does not say what he read", err, orders.ErrConflict, "nobody says which version")
	if n.told != nil {
		t.Errorf("a mark alone is told: %q", n.told)
	}
}

// Hosts' DNS asks by name, with or without the domain, and by address.
func TestWhatNamesAndAddressesMean(t *testing.T) {
	x, n := newServices()
	r := x.has(t, n, &apiv1.CreateServiceRequest{Name: "web"})
	for _, name := range []string{"web", "WEB.svc.", "web.svc"} {
		if got, err := x.ByName(name); err != nil || got.Address != x.Address(r.ID) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if len(n.told) != 3 {
		t.Errorf("asked for three times, noted is %q", n.told)
	}
	if got, err := x.ByAddress(x.Address(r.ID)); err != nil || got.Name != "web" || got.Sid != r.ID.String() {
		t.Errorf("by its address: %v, %v", got, err)
	}
	if got, err := x.ByAddress("2001:db8::1"); err != nil || got.Name != "s1" || got.Sid != "" {
		t.Errorf("a host's address: %v, %v", got, err)
	}
	_, err := x.ByAddress("2001:db8::2")
	refused(t, "nobody's address", err, names.ErrUnknown, "no host has it")
	_, err = x.ByAddress("x")
	refused(t, "no address", err, names.ErrInvalid, "x")
	_, err = x.ByName("db")
	refused(t, "a name of nothing", err, names.ErrUnknown, "db")
}

func TestAnEmptyListIsSaidToBeMeant(t *testing.T) {
	x, n := newServices()
	x.has(t, n, &apiv1.CreateServiceRequest{Name: "web", Access: &apiv1.Access{Servers: []string{"s1"}}})
	_, err := x.UpdateAccess(&apiv1.UpdateAccessRequest{Name: "web", Version: 1})
	refused(t, "an empty list", err, names.ErrInvalid, "an empty list is no list")
	c, err := x.UpdateAccess(&apiv1.UpdateAccessRequest{Name: "web", Version: 1, AnyServer: true})
	if err != nil {
		t.Fatal(err)
	}
	if c.Effect(); !slices.Contains(n.told, "rejudge") {
		t.Errorf("others may serve, told %q", n.told)
	}
	if got := x.Nameless([]string{"s1:root", "s9"}, []string{"s8", "service:db"}, x.Has); len(got) != 3 {
		t.Errorf("nothing bears the names %q, want those of s9, s8 and db", got)
	}
}

func TestWeightsAreAllTakenOrNone(t *testing.T) {
	x, n := newServices()
	x.has(t, n, &apiv1.CreateServiceRequest{Name: "web"})
	one, two := &apiv1.HostWeight{Host: "s1", Weight: 1}, &apiv1.HostWeight{Host: "s2", Weight: 2}
	_, err := x.SetWeights("web", []*apiv1.HostWeight{one, two, one})
	refused(t, "a host twice", err, names.ErrInvalid, "twice")
	_, err = x.SetWeights("web", []*apiv1.HostWeight{one, {Host: "s9"}})
	refused(t, "a host that there is not", err, orders.ErrNoHost, "s9")
	_, err = x.SetWeights("web", nil)
	refused(t, "none", err, names.ErrInvalid, "0 weights")
	c, err := x.SetWeights("web", []*apiv1.HostWeight{one, two})
	if err != nil || len(n.overrides) > 0 || len(c.Records) != 2 {
		t.Fatalf("%v: %v before the effect, %d records", err, n.overrides, len(c.Records))
	}
	if c.Effect(); n.overrides["s1"].Weight != 1 || n.overrides["s2"].Weight != 2 {
		t.Errorf("weights are %v", n.overrides)
	}
}

func TestFailoverNeedsHostsThatProveWhoTheyAre(t *testing.T) {
	x, n := newServices()
	if err := x.Holdable(names.Policy{Failover: names.Continue}); err != nil {
		t.Error(err)
	}
	n.keyed = false
	_, err := x.Create(&apiv1.CreateServiceRequest{Name: "web", Policy: &apiv1.Policy{Failover: names.Continue}})
	refused(t, "in an open network", err, orders.ErrConflict, "--trust keys")
}

// The last instance is drained only with force, and who asks hears what would break.
func TestWhatADrainDoes(t *testing.T) {
	x, n := newServices()
	r := x.has(t, n, &apiv1.CreateServiceRequest{Name: "web", Policy: &apiv1.Policy{Failover: names.Continue, Drain: names.Shed}})
	web := sid.Triple{Service: r.ID, Proto: sid.TCP, Port: 80}
	n.instances = []plan.Instance{{Host: "s1", Triple: web, Effective: 100}}
	_, err := x.Drain(&apiv1.DrainRequest{Name: "web", Host: "s1"})
	refused(t, "the last one", err, orders.ErrConflict, "last host")
	answer, _, err := x.DrainHost(&apiv1.DrainHostRequest{Host: "s1"})
	refused(t, "all of the last one", err, orders.ErrConflict, "last host")
	if n.refused != 2 || answer.Flows != 7 || !strings.Contains(answer.Services[0].Breaks, "3 connections are reset (no other") {
		t.Errorf("%d refused, answer %v", n.refused, answer)
	}
	n.instances = append(n.instances, plan.Instance{Host: "s2", Triple: web, Effective: 100})
	n.capable = []string{"s1", "s2"}
	answer, c, err := x.DrainHost(&apiv1.DrainHostRequest{Host: "s1"})
	if err != nil || answer.Services[0].Breaks != "" || answer.Services[0].Others != 1 {
		t.Fatalf("%v: beside another one that can resume: %v", err, answer)
	}
	if c.Effect(); !n.overrides["s1"].Drain || !slices.Equal(n.told, []string{"tell s1"}) {
		t.Errorf("%v, told %q", n.overrides, n.told)
	}
	_, _, err = x.DrainHost(&apiv1.DrainHostRequest{Host: "s1", Mode: "gently"})
	refused(t, "a mode that there is not", err, names.ErrInvalid, "gently")
	n.instances = nil
	if _, c, err = x.DrainHost(&apiv1.DrainHostRequest{Host: "s2"}); err != nil || len(c.Records) > 0 {
		t.Errorf("a host that serves nothing: %v, %v", err, c.Records)
	}
}
