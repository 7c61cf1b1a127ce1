package boost

import (
	"slices"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// stopping is a network at whose switches e1 and w1 are, and e1's machine forwards no IPv4.
func stopping(t *testing.T) (*network, *driver, *stream) {
	n, d := switched(t)
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	j := joinOf("e1")
	j.Stops = []uint32{4}
	e1 := n.joinAs(j)
	d.keys["e1"], d.made["e1"] = n.agents["e1"].announceKey, 0
	d.joins("w1")
	d.sees("e1", "w1")
	d.settle()
	return n, d, e1
}

// says has an agent say what its machine does not forward, and returns what became of the entry.
func (d *driver) says(s *stream, stops ...uint32) *apiv1.BoostEntry {
	d.n.Report(s.name, s.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Stops: stops}}})
	d.n.Flush()
	d.settle()
	return d.n.list().Entries[0]
}

// An agent whose machine forwards nothing says so, when it joins and later: no switch sends packets there that could end there; other
// agents take them, or they pass unboosted, with the reason.
func TestAMachineThatForwardsNothingIsPlannedAround(t *testing.T) {
	n, d, e1 := stopping(t)
	stopped := func(e *apiv1.BoostEntry) bool {
		return e.State == unserved && len(e.Lanes) == 0 && strings.Contains(e.Why, "forwards IPv4; at e1: sysctl -w net.ipv4.ip_forward=1")
	}
	if all := n.list(); !stopped(all.Entries[0]) || !slices.Equal(all.Agents[0].Stops, []uint32{4}) || len(d.to("s1", requests)) > 0 {
		t.Errorf("it has joined: %v", all)
	}
	told := func() (list []string) {
		for _, e := range n.events {
			if strings.HasPrefix(e, "boost.trouble e1: the agent's machine forwards no ") {
				list = append(list, e)
			}
		}
		return list
	}
	if all := told(); len(all) != 1 || !strings.Contains(all[0], "forwards no IPv4: ") {
		t.Errorf("told: %v", all)
	}
	if e := d.says(e1, 6); !stopped(e) {
		t.Errorf("a moment later it forwards IPv4, and no IPv6, of which no entry is: %v", e)
	}
	n.wait(Patience)
	d.sees("e1", "w1")
	if e := d.says(e1, 6); e.State != boosts || len(e.Lanes) == 0 || len(d.to("s1", requests)) == 0 {
		t.Errorf("it has forwarded it for a while: %v", e)
	}
	if e := d.says(e1, 4, 6); !stopped(e) {
		t.Errorf("it does not any more: %v", e)
	}
	for range 3 {
		d.says(e1)
		d.says(e1, 4, 6)
	}
	if all := told(); len(all) != 2 {
		t.Errorf("it flaps, which is told: %v", all)
	}
	d.joins("e2")
	d.sees("e2")
	if e := d.says(e1, 4); e.State != boosts || slices.ContainsFunc(e.Lanes, func(l *apiv1.BoostLane) bool { return l.Near != "e2" }) {
		t.Errorf("another agent is at the site: %v", e)
	}
	n.Lost("e1", e1.Session, nil)
	if a := n.list().Agents[0]; len(a.Stops) != 0 {
		t.Errorf("it is away, and is said to forward no %v", a.Stops)
	}
}

// An agent with more connections than a switch has rules for, one by one, keeps its lanes: the switch would send it what is new of them
// all the same, and its machine would drop that.
func TestAnAgentThatCarriesManyKeepsItsLanes(t *testing.T) {
	n, d, e1 := stopping(t)
	n.byHand = true
	n.wait(Patience)
	d.sees("e1", "w1")
	if e := d.says(e1); e.State != boosts {
		t.Fatal(e)
	}
	many := manyOf(n.list().Entries[0].Lanes)
	report := func(m *apiv1.BoostSessions) {
		n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: m}})
		n.Flush()
		d.settle()
	}
	report(many)
	if e := d.says(e1, 4); e.State != boosts || len(d.to("s1", requests)) == 0 {
		t.Errorf("it carries many: %v", e)
	}
	report(&apiv1.BoostSessions{Ended: []*apiv1.BoostSessionEnd{{Far: "w1", Number: 1}}})
	if e := n.list().Entries[0]; e.State != unserved || len(d.to("s1", requests)) > 0 {
		t.Errorf("it carries fewer: %v", e)
	}
	want(t, "pins", d.to("s1", pinned), map[string]int{"to-e1": maxPins})
}
