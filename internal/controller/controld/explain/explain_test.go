package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// a network of the service web and the hosts s1 and s2, as explanations see it.
type network struct {
	*names.Table
	instances []plan.Instance
	capable   []string
	override  store.Override
	allowed   resolve.AccessList
	refused   map[string][]Refusal
	routers   []Resolver
	events    []*apiv1.Event
}

func (n *network) Instances(id sid.ServiceID) (list []plan.Instance) {
	return slices.DeleteFunc(slices.Clone(n.instances), func(i plan.Instance) bool { return i.Triple.Service != id })
}

func (n *network) Served(id sid.ServiceID) (instances int, taken bool) {
	for _, i := range n.Instances(id) {
		taken = taken || i.Effective > 0
	}
	return len(n.Instances(id)), taken
}

func (n *network) Capable(sid.ServiceID) []string                       { return n.capable }
func (n *network) Address(id sid.ServiceID) string                      { return id.String() }
func (n *network) Nameless(_, _ []string, _ func(string) bool) []string { return nil }
func (n *network) Of(sid.ServiceID, string) store.Override              { return n.override }
func (n *network) Mode(string, sid.ServiceID) string                    { return n.override.Mode }
func (n *network) Set(sid.ServiceID) resolve.AccessList                 { return n.allowed }
func (n *network) Missed(sid.ServiceID) (bool, time.Time)               { return true, time.Time{} }
func (n *network) Names() []string                                      { return []string{"s1", "s2"} }
func (n *network) Locators(host string) []sid.Locator                   { return []sid.Locator{locators[host]} }
func (n *network) Refused(host string) []Refusal                        { return slices.Clone(n.refused[host]) }
func (n *network) Since(string, sid.Triple) time.Time                   { return time.UnixMilli(5) }
func (n *network) Load(string, sid.Triple) (flows, acceptQueue uint32)  { return 2, 1 }
func (n *network) Resumes(host string, _ sid.Triple) bool               { return slices.Contains(n.capable, host) }
func (n *network) Resolvers() []Resolver                                { return n.routers }
func (n *network) Last(int, func(*apiv1.Event) bool) []*apiv1.Event     { return slices.Clone(n.events) }
func (n *network) Left(host string) []Left {
	return []Left{{From: 9, To: locators[host], Leads: host == "s1"}}
}
func (n *network) Places(host string) []Place {
	return []Place{{Locator: locators[host]}, {Router: "r2", Port: "p", Locator: 7}}
}

var (
	web      = sid.Triple{Service: sid.ServiceID{SS: 1, Suffix: 0x10000}, Proto: sid.TCP, Port: 80}
	locators = map[string]sid.Locator{"s1": 1, "s2": 2}
)

func newNetwork(t *testing.T, r names.Record) (*Network, *network, names.Record) {
	t.Helper()
	n := &network{Table: names.NewTable("svc"), refused: map[string][]Refusal{}}
	r.Name, r.ID, r.Version = "web", web.Service, 1
	if err := n.Add(r); err != nil {
		t.Fatal(err)
	}
	return &Network{Plan: n, Services: n, Overrides: n, Access: n, Registrations: n, Hosts: n, Routers: n, History: n, Keyed: func() bool { return true }}, n, r
}

// has says which of the texts is in no line.
func has(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, text) }) {
			t.Errorf("no line has %q:\n%s", text, strings.Join(lines, "\n"))
		}
	}
}

func TestWhyNewFlowsGoWhereTheyGo(t *testing.T) {
	x, n, r := newNetwork(t, names.Record{Policy: names.Policy{Failover: names.Continue, Weight: 50}})
	has(t, x.reasons(r), "no host serves it", "no service router has joined", "no instance can resume")
	n.instances = []plan.Instance{
		{Host: "s1", Triple: web, Locator: 1, Weight: 50, Effective: 999, State: "up"},
		{Host: "s2", Triple: web, Locator: 2, Weight: 50, Effective: 1, State: "up", Reason: "slow"},
	}
	n.capable = []string{"s2"}
	n.routers = []Resolver{{Name: "r1"}, {Name: "r2", Away: true, Behind: true}, {Name: "r3", Behind: true}}
	has(t, x.reasons(r), "s1 tcp/80", "100 % of new flows, weight 50 (the service's policy)", "less than 1 %", "can resume flows of others, 2 live flows: slow",
		"r1, r2 (away: by what it knows), r3 (has not applied", "(failover: continue): s2", "s1 is also at r2 p", "sent on to "+locators["s1"].String(), "once the way there stands")
	n.override.Set = true
	has(t, x.reasons(r), "set by an operator")
}

func TestWhomTheListsRefuse(t *testing.T) {
	x, n, r := newNetwork(t, names.Record{Access: names.Access{Allow: []string{"s1", "service:db"}}})
	n.refused["s2"] = []Refusal{{web, "not on the list"}, {sid.Triple{Service: sid.ServiceID{SS: 1, Suffix: 5}}, "of another service"}}
	n.allowed = resolve.NewAccessList([]resolve.Prefix{resolve.NewPrefix(1, sid.LocatorBits)})
	db := names.Record{Name: "db", ID: sid.ServiceID{SS: 1, Suffix: 0x10001}, Version: 1}
	if err := n.Add(db); err != nil {
		t.Fatal(err)
	}
	lines := x.access(r)
	has(t, lines, "s2 would serve tcp/80 and may not: not on the list", "only s1, service:db may connect", "connections from s2 are refused", "no host serves db")
	if len(lines) != 3 {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	r.Access.Allow = []string{names.Nobody}
	has(t, x.access(r), "nobody may connect")
	if got := few([]string{"a", "b", "c", "d", "e"}); got != "a, b, c and 2 more" {
		t.Errorf("of five %q", got)
	}
}

// Services that somebody serves are no facts; of the others the reason is.
func TestWhichServicesNobodyServes(t *testing.T) {
	x, n, _ := newNetwork(t, names.Record{})
	n.refused["s1"] = []Refusal{{web, "its permit has ended"}}
	if got := x.Unserved(); len(got) != 1 || !got[0].Had || got[0].Refused != "s1 would: its permit has ended" {
		t.Errorf("without an instance: %+v", got)
	}
	n.instances = []plan.Instance{{Host: "s2", Triple: web, State: "up"}}
	if got := x.Unserved(); len(got) != 1 || got[0].Instances != 1 || got[0].Reason != "s2 has weight 0" || got[0].Refused != "" {
		t.Errorf("with one that gets nothing: %+v", got)
	}
	n.instances[0].Effective = 1
	if got := x.Unserved(); len(got) != 0 {
		t.Errorf("served: %+v", got)
	}
}

func TestAServiceIsShownWithItsInstancesAndEvents(t *testing.T) {
	x, n, r := newNetwork(t, names.Record{})
	n.instances = []plan.Instance{{Host: "s1", Triple: web, State: "draining", Reason: "drained"}}
	n.override.Mode = names.Shed
	n.events = []*apiv1.Event{{Kind: "service.create", Subject: "web"}, {Kind: "service.create", Subject: "db"}, {Kind: "host.move", Subject: "s1"},
		{Kind: "host.move", Subject: "s2"}, {Kind: "flow.move", Subject: "s1", Attrs: map[string]string{"service": "db"}}}
	e := x.Service(r)
	i := e.Service.Instances[0]
	if i.Flows != 2 || i.AcceptQueue != 1 || i.SinceUnixMs != 5 || i.Reason != "drained (shed), 2 flows left" || e.Service.Version != 1 {
		t.Errorf("shown as %v", e.Service)
	}
	if len(e.Events) != 2 || e.Events[1].Subject != "s1" {
		t.Errorf("its events: %v", e.Events)
	}
}
