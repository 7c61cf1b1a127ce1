package boost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
)

// apply makes sites and entries what files say, and returns that in a line.
func (n *network) apply(req *apiv1.ApplyRequest) string {
	n.t.Helper()
	req = proto.CloneOf(req) // it is put in order
	if req.Owner == "" {
		req.Owner = "apply"
	}
	resp := &apiv1.ApplyResponse{}
	steps := n.Apply(req, resp)
	var list []string
	for _, c := range resp.Changes {
		line := c.Action + " " + strings.TrimPrefix(c.Kind, "boost ") + " " + c.Name
		for _, f := range c.Fields {
			line += fmt.Sprintf(" %s:%s>%s", f.Field, f.From, f.To)
		}
		list = append(list, line)
	}
	if len(resp.Problems) == 0 && !req.DryRun {
		for _, s := range steps {
			if len(s.Records) == 0 || len(s.Says) == 0 {
				n.t.Errorf("%s %s is done, and %d records and %d events tell of it", s.Change.Kind, s.Change.Name, len(s.Records), len(s.Says))
			}
			s.Effect()
		}
		n.Flush()
	}
	for _, p := range resp.Problems {
		list = append(list, fmt.Sprintf("wrong %s %s %s: %s", strings.TrimPrefix(p.Kind, "boost "), p.Service, p.Field, p.Text))
		if p.Refused {
			list[len(list)-1] += " (refused)"
		}
	}
	return strings.Join(list, "; ")
}

func siteSpec(name, prefix string, agents ...string) *apiv1.BoostSiteSpec {
	s := &apiv1.BoostSiteSpec{Name: name, Prefixes: []string{prefix}}
	if len(agents) > 0 {
		s.Agents = &apiv1.StringList{Items: agents}
	}
	return s
}

func entrySpec(name, client, server string, port uint32) *apiv1.BoostEntrySpec {
	e := &apiv1.BoostEntrySpec{Name: name, Client: client, Server: server}
	if port > 0 {
		e.Port = &port
	}
	return e
}

// wanted are two sites and an entry between them.
func wanted() *apiv1.ApplyRequest {
	return &apiv1.ApplyRequest{
		BoostSites:   []*apiv1.BoostSiteSpec{siteSpec("west", "198.51.100.0/24", "w1"), siteSpec("east", "192.0.2.0/24", "e2", "e1")},
		BoostEntries: []*apiv1.BoostEntrySpec{entrySpec("files", "192.0.2.0/24", "198.51.100.7", 443)},
	}
}

func TestFilesAreAppliedOnceAndADryRunChangesNothing(t *testing.T) {
	n := newNetwork(t)
	const all = "create site east prefixes:>192.0.2.0/24 agents:>e1, e2; create site west prefixes:>198.51.100.0/24 agents:>w1; " +
		"create entry files client:>192.0.2.0/24 server:>198.51.100.7/32 port:>443"
	dry := wanted()
	dry.DryRun = true
	if got := n.apply(dry); got != all || len(n.list().Sites)+len(n.list().Entries) > 0 {
		t.Errorf("a dry run: %s\nthere is %v", got, n.list())
	}
	if got := n.apply(wanted()); got != all {
		t.Errorf("applied: %s, want %s", got, all)
	}
	if got := n.apply(wanted()); got != "none site east; none site west; none entry files" {
		t.Errorf("again: %s", got)
	}
	sites, entries := n.Specs()
	exported := &apiv1.ApplyRequest{BoostSites: sites, BoostEntries: entries, Prune: true, KnowsBoost: true}
	if got := n.apply(exported); got != "none site east; none site west; none entry files" {
		t.Errorf("what was exported: %s", got)
	}
	n.join("e1")
	n.join("w1")
	if e := n.list().Entries[0]; e.State != boosts {
		t.Errorf("the entry %s: %s", e.State, e.Why)
	}
}

// What files do not say stays as somebody set it; what they said and do not say any more goes back to the default.
func TestFilesTakeBackWhatTheySaid(t *testing.T) {
	n := newNetwork(t)
	n.sites() // by hand
	req := wanted()
	req.BoostSites = []*apiv1.BoostSiteSpec{siteSpec("east", "192.0.2.0/24"), siteSpec("west", "198.51.100.0/24")}
	req.BoostEntries[0].UntilUnixMs = proto.Int64(n.now.Add(time.Hour).UnixMilli())
	if got := n.apply(req); got != "adopt site east; adopt site west; create entry files client:>192.0.2.0/24 server:>198.51.100.7/32 port:>443 until:>2026-11-28T13:00:00Z" {
		t.Errorf("%s", got)
	}
	req.BoostSites[0].Switches = &apiv1.StringList{Items: []string{"s1"}}
	req.BoostEntries[0].UntilUnixMs, req.BoostEntries[0].Port = nil, nil
	if got := n.apply(req); got != "update site east switches:>s1; none site west; update entry files port:443> until:2026-11-28T13:00:00Z>" {
		t.Errorf("%s", got)
	}
	req.BoostSites[0].Switches = nil
	if got := n.apply(req); got != "update site east switches:s1>; none site west; none entry files" {
		t.Errorf("%s", got)
	}
	if s := n.list().Sites[0]; len(s.Agents) != 2 {
		t.Errorf("agents that were set by hand are %v", s.Agents)
	}
}

func TestPruneTakesAwayWhatItsFilesMade(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	req := wanted()
	req.BoostSites = append(req.BoostSites, siteSpec("south", "203.0.113.0/24"))
	req.BoostSites[0].Agents, req.BoostSites[1].Agents = nil, nil
	n.apply(req)
	if got := n.apply(&apiv1.ApplyRequest{Prune: true}); got != "" {
		t.Errorf("a command of before, which knows nothing of boost: %s", got)
	}
	last := &apiv1.ApplyRequest{Prune: true, KnowsBoost: true, BoostSites: req.BoostSites[:1]}
	if got := n.apply(last); got != "release site east; remove site south; none site west; remove entry files" {
		t.Errorf("prune: %s", got)
	}
	if l := n.list(); len(l.Sites) != 2 || len(l.Entries) != 0 {
		t.Errorf("left are %v", l)
	}
	if got := n.apply(&apiv1.ApplyRequest{Owner: "others", BoostSites: last.BoostSites}); !strings.Contains(got, "belongs to the files of apply") || !strings.HasSuffix(got, "(refused)") {
		t.Errorf("another owner's: %s", got)
	}
}

func TestAllThatIsWrongWithFilesIsToldAndNothingIsDone(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	if _, err := n.allow(&apiv1.BoostEntry{Name: "byhand", Client: "192.0.2.0/25", Server: "198.51.100.9", Port: 80}); err != nil {
		t.Fatal(err)
	}
	before := n.list().String()
	sometimes := entrySpec("b", "192.0.2.1", "198.51.100.9", 1)
	sometimes.Accept = proto.String("sometimes")
	backwards := entrySpec("times", "192.0.2.128/25", "198.51.100.1", 1)
	backwards.FromUnixMs, backwards.UntilUnixMs = proto.Int64(2000), proto.Int64(1000)
	both := siteSpec("south", "203.0.113.0/24")
	both.Switches, both.OnPath = &apiv1.StringList{Items: []string{"s1"}}, true
	for want, req := range map[string]*apiv1.ApplyRequest{
		"wrong entry b client: entry \"b\": no site has":               {BoostEntries: []*apiv1.BoostEntrySpec{entrySpec("b", "10.0.0.0/8", "198.51.100.9", 1)}},
		"wrong entry b server: entry \"b\": server 198.51.100.9/24":    {BoostEntries: []*apiv1.BoostEntrySpec{entrySpec("b", "192.0.2.1", "198.51.100.9/24", 1)}},
		"wrong entry b port: ":                                         {BoostEntries: []*apiv1.BoostEntrySpec{entrySpec("b", "192.0.2.1", "198.51.100.9", 70000)}},
		"wrong entry b accept: entry \"b\": accept \"sometimes\"":      {BoostEntries: []*apiv1.BoostEntrySpec{sometimes}},
		"wrong entry times until: ":                                    {BoostEntries: []*apiv1.BoostEntrySpec{backwards}},
		"wrong entry B : entry name":                                   {BoostEntries: []*apiv1.BoostEntrySpec{entrySpec("B", "192.0.2.1", "198.51.100.9", 1)}},
		"wrong entry b : boost entry b is named twice":                 {BoostEntries: []*apiv1.BoostEntrySpec{entrySpec("b", "192.0.2.1", "198.51.100.8", 1), entrySpec("b", "192.0.2.1", "198.51.100.9", 1)}},
		"wrong entry able : entries \"able\" and \"byhand\" have conn": {BoostEntries: []*apiv1.BoostEntrySpec{entrySpec("able", "192.0.2.1", "198.51.100.9", 80)}}, // though the other one is found last
		"wrong site south prefixes: sites \"east\" and \"south\" both": {BoostSites: []*apiv1.BoostSiteSpec{siteSpec("south", "192.0.2.128/25")}},
		"wrong site south agents: agent e1 serves site \"east\"":       {BoostSites: []*apiv1.BoostSiteSpec{siteSpec("south", "203.0.113.0/24", "e1")}},
		"wrong site south on-path: ":                                   {BoostSites: []*apiv1.BoostSiteSpec{both}},
		"wrong site south prefixes: site \"south\": 0 prefixes":        {BoostSites: []*apiv1.BoostSiteSpec{{Name: "south"}}},
		"wrong site south agents: agent name \"E 1\"":                  {BoostSites: []*apiv1.BoostSiteSpec{siteSpec("south", "203.0.113.0/24", "E 1")}},
		"wrong entry byhand client: entry \"byhand\": no site has":     {BoostSites: []*apiv1.BoostSiteSpec{siteSpec("east", "192.0.2.128/25")}},
	} {
		if got := n.apply(req); !strings.Contains(got, want) || strings.Count(got, "wrong") != 1 {
			t.Errorf("%s\nwant one mistake, %q", got, want)
		}
	}
	if after := n.list().String(); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

// When clients are accepted is no other connections: lanes keep their numbers, and what they carry goes on.
func TestFilesSayWhenClientsAreAccepted(t *testing.T) {
	n := newNetwork(t)
	req := wanted()
	n.apply(req)
	e1, w1 := n.join("e1"), n.join("w1")
	number := e1.told().GetLanes()[0].Number
	w1.told()
	for _, c := range []struct {
		says *string
		want string
		is   bool
	}{
		{proto.String(lane.AtOnce), "none site east; none site west; update entry files accept:>at-once", true},
		{proto.String(lane.AtOnce), "none site east; none site west; none entry files", true},
		{nil, "none site east; none site west; update entry files accept:at-once>", false},
	} {
		req.BoostEntries[0].Accept = c.says
		if got := n.apply(req); got != c.want {
			t.Errorf("applied: %s, want %s", got, c.want)
		}
		if e := n.list().Entries[0]; e.Accept != lane.Accept(c.is) || e.Lanes[0].Number != number || e.Lanes[0].AtOnce != c.is {
			t.Errorf("the entry is %v", e)
		}
		_, entries := n.Specs()
		if got := entries[0].GetAccept() == lane.AtOnce; got != c.is {
			t.Errorf("it is written as %v", entries[0])
		}
	}
}

// An agent that leaves its site ends what it carries by resets: files do that only when told to.
func TestAnAgentThatCarriesConnectionsStaysAtItsSite(t *testing.T) {
	n := newNetwork(t)
	n.apply(wanted())
	e1 := n.join("e1")
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Sessions: 3}}})
	req := wanted()
	req.BoostSites[1] = siteSpec("east", "192.0.2.0/24", "e2")
	if got := n.apply(req); !strings.Contains(got, "wrong site east agents: agent e1 would leave site \"east\" and reset 3 connections: drain it first") || len(n.list().Sites[0].Agents) != 2 {
		t.Errorf("%s", got)
	}
	if req.Force = true; n.apply(req) == "" || len(n.list().Sites[0].Agents) != 1 {
		t.Errorf("with force east has %v", n.list().Sites[0].Agents)
	}
}

// Nor does one leave its site of which nothing is known: a controller has just begun. Nor is what it carries taken from it by
// other switches of its site.
func TestAnAgentIsLeftWhatItMayCarry(t *testing.T) {
	n := newNetwork(t)
	n.apply(wanted())
	e1 := n.join("e1")
	req := wanted()
	req.BoostSites[1] = siteSpec("east", "192.0.2.0/24", "e2")
	if got := n.apply(req); !strings.Contains(got, "reset what it carries, which is not known before it is heard") {
		t.Errorf("%s", got)
	}
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{}}})
	if got := n.apply(req); strings.Contains(got, "wrong") {
		t.Errorf("it carries nothing: %s", got)
	}

	n, d := switched(t)
	e1 = d.joins("e1")
	d.sees("e1")
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Sessions: 3}}})
	req = &apiv1.ApplyRequest{BoostSites: []*apiv1.BoostSiteSpec{siteSpec("east", "192.0.2.0/24", "e1", "e2")}}
	req.BoostSites[0].Switches = &apiv1.StringList{Items: []string{"s2"}}
	if got := n.apply(req); !strings.Contains(got, `wrong site east switches: agent e1 is at switch "s1", which would send it no more of 3 connections`) {
		t.Errorf("%s", got)
	}
}

// A lane keeps its number where its entry becomes other connections: agents see it go before.
func TestAnEntryThatBecomesOtherConnectionsLeavesItsLanesFirst(t *testing.T) {
	n := newNetwork(t)
	n.apply(wanted())
	n.join("w1").told()
	e1 := n.join("e1")
	e1.told()
	n.byHand = true
	req := wanted()
	req.BoostEntries[0].Server = "198.51.100.8"
	n.apply(req)
	var seen []string
	end := &apiv1.BoostOrder{}
	e1.Send(end)
	_ = e1.Write(func(o *apiv1.BoostOrder) error {
		if o == end {
			return errRead
		}
		if l := o.GetLanes(); l != nil {
			text := "none"
			for _, x := range l.Lanes {
				text = x.Server
			}
			seen = append(seen, text)
		}
		return nil
	})
	if len(seen) == 0 || seen[0] == "198.51.100.8/32" {
		t.Errorf("the near agent was told of lanes to %v", seen)
	}
	if e := n.list().Entries[0]; e.Server != "198.51.100.8/32" {
		t.Errorf("the entry is %v", e)
	}
}

func TestNothingIsDoneThatIsNotInThePlan(t *testing.T) {
	n := newNetwork(t)
	req := wanted()
	resp := &apiv1.ApplyResponse{}
	dry := proto.CloneOf(req)
	dry.Owner = "apply"
	n.Apply(dry, resp)
	req.Planned, req.Plan = true, resp.Changes
	n.sites()
	if got := n.apply(req); !strings.Contains(got, "wrong site east : boost site east: what would be done now (adopt) is not what the plan says (create") {
		t.Errorf("%s", got)
	}
}
