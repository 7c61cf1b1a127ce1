package boost

import (
	"math"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/session"
)

func TestWhoMayNotJoinHearsWhy(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	n.join("e1")
	for what, c := range map[string]struct {
		change func(*apiv1.BoostJoin)
		says   string
	}{
		"name":       {func(j *apiv1.BoostJoin) { j.Name = "West 1" }, "want letters, digits and hyphens"},
		"twice":      {func(j *apiv1.BoostJoin) { j.Name, j.BootId = "e1", "another" }, "connected already"},
		"same door":  {func(j *apiv1.BoostJoin) { j.Door = joinOf("e1").Door }, "agent e1 has the door"},
		"any door":   {func(j *apiv1.BoostJoin) { j.Door = "0.0.0.0:1" }, "want an address of one machine"},
		"no door":    {func(j *apiv1.BoostJoin) { j.Door = "here" }, "want an address of one machine"},
		"zone":       {func(j *apiv1.BoostJoin) { j.Door = "[fe80::1%" + strings.Repeat("z", 1<<20) + "]:1" }, "want an address of one machine"},
		"no key":     {func(j *apiv1.BoostJoin) { j.Key = nil }, "a key of 0 bytes"},
		"long":       {func(j *apiv1.BoostJoin) { j.Version = strings.Repeat("x", 300) }, "more than 256 bytes"},
		"other kind": {func(j *apiv1.BoostJoin) { j.Speaks = &apiv1.Versions{From: 99, To: 99} }, "version"},
	} {
		j := joinOf("w1")
		c.change(j)
		s := session.New[apiv1.BoostOrder](t.Context(), 10)
		if no := n.Join(s, j); no == nil || !strings.Contains(no.Reason, c.says) {
			t.Errorf("%s: %v; want that it says %q", what, no, c.says)
		}
	}
	if all := n.list().Agents; len(all) != 1 {
		t.Errorf("who was refused is known: %v", all)
	}
}

// An agent may say anything of itself: it is bounded, and what is no number is none.
func TestAnAgentsWordIsBounded(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	n.join("w1")
	load := &apiv1.BoostLoad{Load: math.NaN(), Trunks: []*apiv1.BoostTrunk{{Agent: "nobody"}, {Agent: strings.Repeat("x", 1<<20)}}}
	for range 2 * maxAgents {
		load.Trunks = append(load.Trunks, &apiv1.BoostTrunk{Agent: "w1", RttUs: 1})
	}
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: load}})
	if a := n.list().Agents[0]; a.Load != 0 || len(a.Trunks) != maxAgents || a.Trunks[0].Agent != "w1" {
		t.Errorf("load %v, %d trunks", a.Load, len(a.Trunks))
	}
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Load: 1e9}}})
	n.Report("e1", e1.Session, &apiv1.BoostReport{})
	if a := n.list().Agents[0]; a.Load != 1 {
		t.Errorf("load %v", a.Load)
	}
}

// What an agent reports is of itself alone, by the stream that it has now.
func TestOnlyTheStreamOfNowCounts(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	old := n.join("e1")
	n.join("e1") // the same process comes back, before its former stream has ended
	n.Report("e1", old.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Sessions: 7}}})
	n.Lost("e1", old.Session, nil)
	if a := n.list().Agents[0]; a.Sessions != 0 || a.State != "here" {
		t.Errorf("agent: %v", a)
	}
}

// What an agent said of its load and its trunks is of the time when it was here: who is away is not shown with it.
func TestAnAgentThatIsAwayIsNotShownAsItWas(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	n.join("w1")
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Sessions: 3, Load: 0.5, Trunks: []*apiv1.BoostTrunk{
		{Agent: "w1", Up: true, RttUs: 5000, Sent: 100, Resent: 1}}}}})
	shown := func(all []*apiv1.BoostAgent) *apiv1.BoostAgent {
		t.Helper()
		for _, a := range all {
			if a.Name == "e1" {
				return a
			}
		}
		t.Fatal("e1 is not shown")
		return nil
	}
	if a := shown(n.list().Agents); a.Sessions != 3 || a.Load != 0.5 || len(a.Trunks) != 1 || a.Sent != 100 {
		t.Errorf("here: %v", a)
	}
	n.Lost("e1", e1.Session, nil)
	for where, a := range map[string]*apiv1.BoostAgent{"listed": shown(n.list().Agents), "in metrics": shown(n.Figures().Agents)} {
		if a.State != "away" || a.Sessions != 0 || a.Load != 0 || len(a.Trunks) != 0 || a.Sent != 0 || a.Resent != 0 {
			t.Errorf("%s: %v", where, a)
		}
	}
	if load := n.state().Agents[0].Load; load != 0.5 {
		t.Errorf("lanes are planned with a load of %v: one that lost its controller for a moment carries what it did", load)
	}
}
