package boost

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/announce"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
)

// A driver is who drives the switches: s1 of the site east, and s2 of west.
type driver struct {
	*SteerSession
	n     *network
	rules map[string]*apiv1.SteerRules // that each switch was told last
	keys  map[string][]byte            // of agents, for what they announce
	made  map[string]uint64
	fresh []string // switches that were told something, and have not taken it
}

// switched is a network of two sites whose switches send agents what they carry.
func switched(t *testing.T) (*network, *driver) {
	n := newNetwork(t)
	for _, s := range []*apiv1.BoostSite{
		{Name: "east", Prefixes: []string{"192.0.2.0/24"}, Agents: []string{"e1", "e2"}, Switches: []string{"s1"}},
		{Name: "west", Prefixes: []string{"198.51.100.0/24"}, Agents: []string{"w1", "w2"}, Switches: []string{"s2"}},
	} {
		if _, err := n.API().SetBoostSite(t.Context(), connect.NewRequest(s)); err != nil {
			t.Fatal(err)
		}
	}
	return n, drive(n)
}

func drive(n *network) *driver {
	d := &driver{SteerSession: session.New[apiv1.SteerOrder](n.t.Context(), 1000), n: n, rules: map[string]*apiv1.SteerRules{}, keys: map[string][]byte{}, made: map[string]uint64{}}
	if no := n.JoinSwitches(d.SteerSession, &apiv1.SteerJoin{Name: "boost"}); no != nil {
		n.t.Fatal(no)
	}
	for _, s := range []string{"s1", "s2"} {
		d.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_State{State: &apiv1.SwitchState{Switch: s, Up: true}}})
	}
	return d
}

func (d *driver) report(r *apiv1.SteerReport) {
	d.n.ReportSwitches("boost", d.SteerSession, r)
	d.n.Flush()
}

// joins lets an agent in, and remembers by what it proves itself.
func (d *driver) joins(name string, held ...*apiv1.BoostLane) *stream {
	d.n.t.Helper()
	s := d.n.join(name, held...)
	d.keys[name], d.made[name] = d.n.agents[name].announceKey, 0
	return s
}

func (d *driver) sighting(name, at, port string) *apiv1.Sighting {
	d.made[name]++
	a := announce.Announcement{Agent: name, Port: "eth0", MAC: [6]byte{2, name[0], name[1]}, Made: d.made[name]}
	frame := a.Append(nil, d.keys[name])
	a, err := announce.Parse(frame)
	if err != nil {
		d.n.t.Fatal(err)
	}
	return &apiv1.Sighting{Switch: at, Port: port, Agent: name, AgentPort: a.Port, Mac: a.MAC[:], Made: a.Made, Proof: a.Proof[:]}
}

// sees has an agent's announcement come to the switch of its site.
func (d *driver) sees(names ...string) {
	d.n.t.Helper()
	for _, name := range names {
		at := map[byte]string{'e': "s1", 'w': "s2"}[name[0]]
		d.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Sighting{Sighting: d.sighting(name, at, "to-"+name)}})
	}
}

// read hears what switches are told.
func (d *driver) read() {
	end := &apiv1.SteerOrder{}
	d.Send(end)
	_ = d.Write(func(o *apiv1.SteerOrder) error {
		if o == end {
			return errRead
		}
		if r := o.GetRules(); r != nil {
			d.rules[r.Switch] = r
			d.fresh = append(d.fresh, r.Switch)
		}
		return nil
	})
}

// takes has the switches take what they were told.
func (d *driver) takes() (any bool) {
	d.read()
	for _, s := range d.fresh {
		d.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Steered{Steered: &apiv1.Steered{Switch: s, Generation: d.rules[s].Generation}}})
		any = true
	}
	d.fresh = nil
	return any
}

// settle has agents and switches take what they are told until there is no more.
func (d *driver) settle() {
	for again := true; again; {
		again = d.takes()
		for _, s := range d.n.by {
			if s.Context().Err() == nil && s.applies() != nil {
				again = true
			}
		}
	}
}

// to are the ports to which a switch sends something of that kind, and how many rules do.
func (d *driver) to(at string, kind apiv1.SteerKind) map[string]int {
	d.read()
	ports := map[string]int{}
	for _, r := range d.rules[at].GetRules() {
		if r.Kind == kind {
			ports[r.Port]++
		}
	}
	return ports
}

const (
	answers  = apiv1.SteerKind_STEER_KIND_ANSWERS
	requests = apiv1.SteerKind_STEER_KIND_REQUESTS
	pinned   = apiv1.SteerKind_STEER_KIND_PINNED
)

func (d *driver) carries(s *stream, number uint64, lane *apiv1.BoostLane, far string, port uint16) {
	d.n.Report(s.name, s.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Changed: []*apiv1.BoostSession{
		{Number: number, Far: far, Lane: lane.Number, Client: fmt.Sprintf("192.0.2.1:%d", port), Server: "198.51.100.7:80"}}}}})
	d.n.Flush()
}

func want(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Nobody has a lane before its agents were seen at switches and the switch of the far one sends it what servers answer.
func TestALaneBeginsOnceTheSwitchesSendWhatItCarries(t *testing.T) {
	n, d := switched(t)
	n.byHand = true
	e1, w1 := d.joins("e1"), d.joins("w1")
	e, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"})
	if err != nil || e.State != unserved || !strings.Contains(e.Why, "seen at a port of its switches") {
		t.Errorf("entry %v, %v", e, err)
	}
	d.sees("e1", "w1")
	e = n.list().Entries[0]
	if e.State != waits || !strings.Contains(e.Why, "s1") {
		t.Errorf("before switches have their rules: %v", e)
	}
	if l := append(w1.read().GetLanes(), e1.read().GetLanes()...); len(l) > 0 {
		t.Errorf("before the switch sends it answers, agents are told %v", l)
	}
	want(t, "requests", d.to("s1", requests), map[string]int{"to-e1": 1})
	want(t, "answers", d.to("s2", answers), map[string]int{"to-w1": 1})
	if r := d.rules["s1"]; len(r.Rules) != 1 || !slices.Equal(r.Exempt, []string{"to-e1"}) || !strings.HasPrefix(string(r.Rules[0].Mac), "\x02e1") || r.Rules[0].Source != "192.0.2.0/24" {
		t.Errorf("s1 is told %v", r)
	}
	for _, s := range []string{"s1", "s2"} {
		d.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Steered{Steered: &apiv1.Steered{Switch: s, Generation: d.rules[s].Generation}}})
	}
	if l := w1.applies().GetLanes(); len(l) != 1 {
		t.Errorf("the far agent is told %v", l)
	}
	if l := e1.applies().GetLanes(); len(l) != 1 || len(l[0].Far) != 1 {
		t.Errorf("the near agent is told %v", l)
	}
	if all := n.list(); all.Entries[0].State != boosts || all.Agents[0].Switch != "s1" || all.Agents[0].SwitchPort != "to-e1" {
		t.Errorf("in the end: %v", all)
	}
}

// What anybody can send counts for nothing: an announcement without the agent's key, an old one, one at a switch of another
// site, or of an agent that nobody knows.
func TestOnlyAnAgentSaysWhereItIs(t *testing.T) {
	n, d := switched(t)
	d.joins("e1")
	good := d.sighting("e1", "s1", "to-e1")
	for what, change := range map[string]func(*apiv1.Sighting){
		"forged":       func(s *apiv1.Sighting) { s.Proof = make([]byte, len(s.Proof)) },
		"no proof":     func(s *apiv1.Sighting) { s.Proof = nil },
		"another MAC":  func(s *apiv1.Sighting) { s.Mac = []byte{2, 9, 9, 9, 9, 9} },
		"a short MAC":  func(s *apiv1.Sighting) { s.Mac = []byte{2} },
		"later":        func(s *apiv1.Sighting) { s.Made++ },
		"another's":    func(s *apiv1.Sighting) { s.Agent = "e2" },
		"other switch": func(s *apiv1.Sighting) { s.Switch = "s2" },
	} {
		s := proto.CloneOf(good)
		change(s)
		d.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Sighting{Sighting: s}})
		if at, port := n.place("e1"); at != "" {
			t.Errorf("%s: e1 is at %s of %s", what, port, at)
		}
	}
	d.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Sighting{Sighting: good}})
	again := proto.CloneOf(good) // somebody who has heard it sends it from elsewhere
	again.Port = "to-thief"
	n.now = n.now.Add(time.Minute)
	d.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Sighting{Sighting: again}})
	if at, port := n.place("e1"); at != "s1" || port != "to-e1" {
		t.Errorf("e1 is at %q of %q", port, at)
	}
}

// An agent that drains gives its lanes to another, and keeps what it carries: the switch sends it that, and the lane's packets
// as long as it has not given it up.
func TestWhatAnAgentCarriesStaysWhenItsLaneMoves(t *testing.T) {
	for _, drained := range []string{"e1", "w1"} {
		t.Run(drained, func(t *testing.T) {
			n, d := switched(t)
			n.byHand = true
			e1 := d.joins("e1")
			d.joins("w1")
			d.sees("e1", "w1")
			e, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"})
			if err != nil {
				t.Fatal(err)
			}
			d.settle()
			first := n.list().Entries[0].Lanes
			d.joins("e2")
			d.joins("w2")
			d.sees("e2", "w2")
			d.settle()
			d.carries(e1, 2, first[0], "w1", 40000|uint16(first[0].Slot))
			for range 2 {
				if _, err := n.API().DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: drained})); err != nil {
					t.Fatal(err)
				}
			}
			at, kind := "s1", requests
			if drained == "w1" {
				at, kind = "s2", answers
			}
			if got := d.to(at, kind); got["to-"+drained] == 0 {
				t.Errorf("before it has given its lanes up, switch %s sends elsewhere: %v", at, got)
			}
			d.settle()
			n.wait(farPatience)
			d.settle()
			if got := d.to(at, kind); got["to-"+drained] != 0 || len(got) != 1 {
				t.Errorf("afterwards switch %s sends lanes' packets to %v", at, got)
			}
			want(t, "pins at "+at, d.to(at, pinned), map[string]int{"to-" + drained: 1})
			n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Ended: []*apiv1.BoostSessionEnd{{Far: "w1", Number: 2}}}}})
			n.Flush()
			want(t, "pins after it has ended", d.to(at, pinned), map[string]int{})
			_ = e
		})
	}
}

// A far agent never has a lane whose answers go to another one, and nobody opens connections by such a one, while lanes move
// from far agent to far agent in any order of who takes its word first.
func TestAnswersNeverGoElsewhereWhileAFarAgentChanges(t *testing.T) {
	for first := range 4 {
		n, d := switched(t)
		n.byHand = true
		all := map[string]*stream{"e1": d.joins("e1"), "w1": d.joins("w1"), "w2": d.joins("w2")}
		d.sees("e1", "w1", "w2")
		if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
			t.Fatal(err)
		}
		d.settle()
		if _, err := n.API().DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: "w1"})); err != nil {
			t.Fatal(err)
		}
		order := []string{"e1", "w1", "w2", "switches"}
		order = append(order[first:], order[:first]...)
		for range 20 {
			for _, who := range order {
				if who == "switches" {
					d.takes()
				} else {
					all[who].applies()
				}
				uses := n.agents["e1"].mayHave()
				for number, l := range uses {
					if l.Near != "e1" {
						continue
					}
					far := n.agents[l.Far[0]]
					sent := false
					for r := range n.switches.byName["s2"].since {
						sent = sent || r.Lane == number && r.Agent == far.Name
					}
					if has := far.mayHave()[number]; has != nil && !sent {
						t.Fatalf("e1 may ask %s, which has lane %d, and its answers go elsewhere", far.Name, number)
					}
				}
			}
			n.now = n.now.Add(100 * time.Millisecond)
			n.wait(0)
		}
		want(t, "answers", d.to("s2", answers), map[string]int{"to-w2": 8})
		if l := n.agents["w2"].mayHave(); len(l) != 8 {
			t.Errorf("w2 has %d lanes", len(l))
		}
		if l := nearLanes(n.agents["e1"].told, "e1"); len(l) != 8 {
			t.Errorf("e1 has %d lanes", len(l))
		}
	}
}

// An agent whose machine is dark gets nothing sent, one that only lost its controller goes on.
func TestNothingIsSentToADarkAgent(t *testing.T) {
	n, d := switched(t)
	e1 := d.joins("e1")
	d.joins("w1")
	d.sees("e1", "w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	d.settle()
	n.Lost("e1", e1.Session, errRead)
	e1.End(nil)
	for range 30 {
		d.sees("e1", "w1")
		n.wait(time.Second)
	}
	want(t, "requests while it is seen", d.to("s1", requests), map[string]int{"to-e1": 1})
	for range 5 {
		d.sees("w1")
		n.wait(time.Second)
	}
	want(t, "requests once nothing is heard of it", d.to("s1", requests), map[string]int{})
	d.settle()
	want(t, "answers to the other end", d.to("s2", answers), map[string]int{})
	if !slices.ContainsFunc(n.events, func(e string) bool { return strings.Contains(e, "boost.unseen e1") }) {
		t.Errorf("events: %v", n.events)
	}
	d.joins("e1")
	d.sees("e1", "w1")
	d.settle()
	want(t, "requests once it is back", d.to("s1", requests), map[string]int{"to-e1": 1})
	d.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_PortDown{PortDown: &apiv1.PortDown{Switch: "s1", Port: "to-e1"}}})
	want(t, "requests while its port is down", d.to("s1", requests), map[string]int{})
}

// An entry that is taken away leaves what it boosts where it is; its lane's rules go once the agents have given it up.
func TestWhatADeniedEntryBoostsGoesOn(t *testing.T) {
	n, d := switched(t)
	n.byHand = true
	e1 := d.joins("e1")
	d.joins("w1")
	d.sees("e1", "w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	d.settle()
	l := n.list().Entries[0].Lanes[0]
	if _, err := n.API().DenyBoost(t.Context(), connect.NewRequest(&apiv1.DenyBoostRequest{Name: "files"})); err != nil {
		t.Fatal(err)
	}
	want(t, "requests before it is given up", d.to("s1", requests), map[string]int{"to-e1": 1})
	d.carries(e1, 2, l, "w1", 40001) // begun a moment before
	d.settle()
	want(t, "requests", d.to("s1", requests), map[string]int{})
	want(t, "answers", d.to("s2", answers), map[string]int{})
	want(t, "pins at s1", d.to("s1", pinned), map[string]int{"to-e1": 1})
	want(t, "pins at s2", d.to("s2", pinned), map[string]int{"to-w1": 1})
}

// A controller that begins to lead tells switches nothing before the agents of before have come and were seen: what switches
// have of before stays.
func TestANewLeaderLeavesRulesUntilAgentsWereSeen(t *testing.T) {
	n, d := switched(t)
	for _, a := range []string{"e1", "w1"} {
		d.joins(a)
	}
	d.sees("e1", "w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	d.settle()
	held := n.agents["e1"].told.Lanes
	next := newNetwork(t)
	state := store.Boost{Sites: []store.BoostSite{n.Boost.sites["east"], n.Boost.sites["west"]}, Entries: []store.BoostEntry{n.entries["files"]},
		Agents: []store.BoostAgent{n.agents["e1"].BoostAgent, n.agents["w1"].BoostAgent}}
	next.Restore(state, 7)
	d2 := drive(next)
	d2.joins("e1", held...)
	d2.joins("w1", held...)
	if d2.read(); len(d2.fresh) != 0 {
		t.Errorf("before they were seen switches are told %v", d2.rules)
	}
	d2.sees("e1", "w1")
	want(t, "requests", d2.to("s1", requests), map[string]int{"to-e1": 1})
	if r := d2.rules["s1"]; r.Generation>>32 != 7 {
		t.Errorf("generation %x", r.Generation)
	}
	d2.settle()
	if e := next.list().Entries[0]; e.State != boosts {
		t.Errorf("entry %v", e)
	}
}

// An agent is sent no packets of hosts that are not its site's, whatever it says that it carries.
func TestAnAgentIsSentNothingOfOtherSites(t *testing.T) {
	n, d := switched(t)
	e1 := d.joins("e1")
	d.joins("w1")
	d.sees("e1", "w1")
	d.settle()
	says := func(number uint64, client, server string) {
		n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Changed: []*apiv1.BoostSession{
			{Number: number, Far: "w1", Lane: 99, Client: client, Server: server}}}}})
		n.Flush()
	}
	says(2, "203.0.113.1:1000", "198.51.100.7:80")
	says(4, "192.0.2.1:1000", "203.0.113.1:80")
	says(6, "198.51.100.7:80", "192.0.2.1:1000")
	want(t, "pins of a liar at s1", d.to("s1", pinned), map[string]int{})
	want(t, "pins of a liar at s2", d.to("s2", pinned), map[string]int{})
	says(8, "192.0.2.1:1000", "198.51.100.7:80")
	want(t, "pins of a connection of its own hosts", d.to("s1", pinned), map[string]int{"to-e1": 1})
}

// A lane whose agent has more connections than may have rules of their own stays in the switch until there are less.
func TestALaneWithManyConnectionsStaysUntilTheyAreFewer(t *testing.T) {
	n, d := switched(t)
	n.byHand = true
	e1 := d.joins("e1")
	d.joins("e2")
	d.joins("w1")
	d.sees("e1", "w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	d.settle()
	many := manyOf(n.list().Entries[0].Lanes)
	report := func(m *apiv1.BoostSessions) {
		n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: m}})
		n.Flush()
	}
	report(many)
	d.sees("e2")
	if _, err := n.API().DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: "e1"})); err != nil {
		t.Fatal(err)
	}
	d.settle()
	want(t, "requests", d.to("s1", requests), map[string]int{"to-e1": 8})
	want(t, "pins", d.to("s1", pinned), map[string]int{})
	report(&apiv1.BoostSessions{Ended: []*apiv1.BoostSessionEnd{{Far: "w1", Number: 1}}})
	d.settle()
	want(t, "requests once there are fewer", d.to("s1", requests), map[string]int{"to-e2": 8})
	want(t, "pins once there are fewer", d.to("s1", pinned), map[string]int{"to-e1": maxPins})
}

// manyOf are connections to w1, of these lanes: one more than a switch may have rules for, one by one.
func manyOf(lanes []*apiv1.BoostLane) *apiv1.BoostSessions {
	many := &apiv1.BoostSessions{}
	for i := range maxPins + 1 {
		l := lanes[i%len(lanes)]
		many.Changed = append(many.Changed, &apiv1.BoostSession{Number: uint64(i + 1), Far: "w1", Lane: l.Number, Client: fmt.Sprintf("192.0.2.%d:%d", 1+i/4096, i%4096<<3|int(l.Slot)), Server: "198.51.100.7:80"})
	}
	return many
}
