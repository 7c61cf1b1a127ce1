package boost

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/boost/legs"
	"scaffold.dev/scaffold/internal/controller/controld/session"
)

const (
	aClient, aServer = "192.0.2.1:40000", "198.51.100.7:80"
	accept           = apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT
	pass             = apiv1.BoostVerdict_BOOST_VERDICT_PASS
)

// rewriting is a network one of whose entries is rewritten, with agents that no switch has seen.
type rewriting struct {
	*network
	*driver
	e1, w1 *stream
	lane   *apiv1.BoostLane
	first  uint64 // number of the last first packet
}

func newRewriting(t *testing.T) *rewriting {
	n, d := switched(t)
	r := &rewriting{network: n, driver: d}
	r.e1, r.w1 = r.enters("e1"), r.enters("w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24", Mode: "rewrite"}); err != nil {
		t.Fatal(err)
	}
	d.settle()
	e := n.list().Entries[0]
	if e.State != boosts || len(e.Lanes) != 1 || !e.Lanes[0].Rewrite || e.Mode != "rewrite" {
		t.Fatalf("entry %v", e)
	}
	r.lane = e.Lanes[0]
	return r
}

// enters lets an agent in that knows lanes which are rewritten.
func (r *rewriting) enters(name string, has ...*apiv1.BoostLeg) *stream {
	j := joinOf(name)
	j.Rewrites, j.Legs = true, has
	in := r.network.joinAs(j)
	r.keys[name], r.made[name] = r.agents[name].announceKey, 0
	return in
}

// comes has a client's first packet come to s1.
func (r *rewriting) comes() uint64 {
	r.first++
	r.driver.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Syn{Syn: &apiv1.SteerSYN{Switch: "s1", Number: r.first, Client: aClient, Server: aServer}}})
	return r.first
}

// said are the orders that a stream has and nobody has read.
func said[T any](s *session.Session[T], end *T) (all []*T) {
	s.Send(end)
	_ = s.Write(func(o *T) error {
		if o == end {
			return errors.New("all was read")
		}
		all = append(all, o)
		return nil
	})
	return all
}

func (r *rewriting) orders(s *stream) []*apiv1.BoostOrder {
	return said(s.Session, &apiv1.BoostOrder{})
}

// told are what s1 and s2 are told of legs, in words, and what is decided about first packets; they have it then.
func (r *rewriting) told(has bool) (words []string) {
	for _, o := range said(r.driver.SteerSession, &apiv1.SteerOrder{}) {
		switch o := o.Order.(type) {
		case *apiv1.SteerOrder_Legs:
			for _, l := range o.Legs.Set {
				words = append(words, fmt.Sprintf("%s: %s %s at %s", o.Legs.Switch, l.Host, l.Other, l.Agent))
			}
			for _, l := range o.Legs.Unset {
				words = append(words, fmt.Sprintf("%s: no %s %s", o.Legs.Switch, l.Host, l.Other))
			}
			if has {
				r.driver.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Steered{Steered: &apiv1.Steered{Switch: o.Legs.Switch, Legs: o.Legs.Generation}}})
			}
		case *apiv1.SteerOrder_First:
			words = append(words, fmt.Sprintf("%d %v", o.First.Number, o.First.Verdict))
		}
	}
	return words
}

func (r *rewriting) says(s *stream, m *apiv1.BoostReport) {
	r.Report(s.name, s.Session, m)
	r.Flush()
}

// asked is the number of the first packet about which the near agent is asked.
func (r *rewriting) asked() uint64 {
	r.t.Helper()
	o := r.orders(r.e1)
	if len(o) != 1 || o[0].GetSyn() == nil {
		r.t.Fatalf("the near agent is told %v", o)
	}
	return o[0].GetSyn().Number
}

func (r *rewriting) accepts(at string) {
	r.t.Helper()
	r.says(r.e1, &apiv1.BoostReport{Report: &apiv1.BoostReport_First{First: &apiv1.BoostFirst{Number: r.asked(), Verdict: accept, At: at}}})
}

// has are the legs of both sites.
func (r *rewriting) has() (n int) {
	for _, of := range r.Figures().Legs {
		n += of
	}
	return n
}

func (r *rewriting) leg(number uint64, at string) *apiv1.BoostLeg {
	return &apiv1.BoostLeg{Number: number, Lane: r.lane.Number, Far: true, Client: aClient, Server: aServer, At: at}
}

func wantWords(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// The near agent waits for the client before its first packet is sent there, and switches have its rules before; the far one
// connects once they have its own.
func TestARewrittenConnectionHasItsRulesFirst(t *testing.T) {
	r := newRewriting(t)
	for at, want := range map[string][2]*apiv1.SteerPunt{
		"s1": {{Source: "192.0.2.0/24", Destination: "198.51.100.0/24", Waits: true}, {Source: "203.0.113.1/32", Destination: "192.0.2.0/24", Answer: true}},
		"s2": {{Source: "198.51.100.0/24", Destination: "192.0.2.0/24", Answer: true}, {Source: "203.0.113.3/32", Destination: "198.51.100.0/24"}},
	} {
		if r := r.driver.rules[at]; len(r.Punts) != 2 || !proto.Equal(r.Punts[0], want[0]) || !proto.Equal(r.Punts[1], want[1]) || len(r.Rules) != 0 {
			t.Errorf("%s is told %v", at, r)
		}
	}
	r.comes()
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: r.leg(7, "203.0.113.3:5000")}})
	wantWords(t, "for the far agent", r.told(false), "s2: 198.51.100.7:80 192.0.2.1:40000 at 203.0.113.3:5000")
	if o := r.orders(r.w1); len(o) != 0 {
		t.Errorf("before its switch has the rules the far agent is told %v", o)
	}
	r.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Steered{Steered: &apiv1.Steered{Switch: "s2", Legs: r.switches.generation + r.generation&^(1<<32-1)}}})
	if o := r.orders(r.w1); len(o) != 1 || o[0].GetLegReady().GetNumber() != 7 || o[0].GetLegReady().Refused != "" {
		t.Errorf("then it is told %v", o)
	}
	r.accepts("203.0.113.1:6000")
	wantWords(t, "for the near agent", r.told(true), "s1: 192.0.2.1:40000 198.51.100.7:80 at 203.0.113.1:6000")
	wantWords(t, "once it has the rules", r.told(true), "1 "+accept.String())
	r.comes() // the answer was lost
	wantWords(t, "sent again", r.told(true), "2 "+accept.String())
	r.says(r.e1, &apiv1.BoostReport{Report: &apiv1.BoostReport_LegOver{LegOver: &apiv1.BoostLegOver{Client: aClient, Server: aServer, At: "203.0.113.1:6000"}}})
	wantWords(t, "over a moment ago", r.told(true))
	r.comes()
	wantWords(t, "the client begins anew", r.told(true), "s1: no 192.0.2.1:40000 198.51.100.7:80")
	r.accepts("203.0.113.1:6001")
	wantWords(t, "the next", r.told(true), "s1: 192.0.2.1:40000 198.51.100.7:80 at 203.0.113.1:6001")
	r.told(true)
	r.wait(legs.LateSegments)
	wantWords(t, "the next stays when the rules of the one before are due to go", r.told(true))
	over := func(at string) {
		r.says(r.e1, &apiv1.BoostReport{Report: &apiv1.BoostReport_LegOver{LegOver: &apiv1.BoostLegOver{Client: aClient, Server: aServer, At: at}}})
	}
	over("203.0.113.1:6000") // the one before, again
	r.wait(legs.LateSegments)
	wantWords(t, "the one before is over", r.told(true))
	over("203.0.113.1:6001")
	r.wait(legs.LateSegments)
	wantWords(t, "over", r.told(true), "s1: no 192.0.2.1:40000 198.51.100.7:80")
}

// A first packet passes where nobody takes it: no lane is of it, the agent is away or goes away, or does not decide.
func TestAFirstPacketPassesThatNobodyTakes(t *testing.T) {
	r := newRewriting(t)
	for what, m := range map[string]*apiv1.SteerSYN{
		"another server": {Switch: "s1", Number: 90, Client: aClient, Server: "192.0.2.9:80"},
		"another switch": {Switch: "s2", Number: 90, Client: aClient, Server: aServer},
		"no address":     {Switch: "s1", Number: 90, Client: "x", Server: aServer},
	} {
		r.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_Syn{Syn: m}})
		wantWords(t, what, r.told(true), "90 "+pass.String())
	}
	r.comes()
	r.says(r.e1, &apiv1.BoostReport{Report: &apiv1.BoostReport_First{First: &apiv1.BoostFirst{Number: r.asked(), Verdict: pass}}})
	wantWords(t, "the agent says so", r.told(true), "1 "+pass.String())
	r.comes()
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_First{First: &apiv1.BoostFirst{Number: r.asked(), Verdict: pass}}})
	wantWords(t, "another agent says so", r.told(true))
	for said := time.Duration(0); said < Patience-frozenAfter; said += time.Second {
		r.says(r.e1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{}}})
		r.wait(time.Second)
	}
	wantWords(t, "the agent lives, and asks others", r.told(true))
	r.says(r.e1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{}}})
	r.wait(frozenAfter)
	wantWords(t, "for too long", r.told(true), "2 "+pass.String())
	r.comes()
	r.wait(frozenAfter + time.Second)
	wantWords(t, "the agent stands still", r.told(true), "3 "+pass.String())
	r.comes()
	wantWords(t, "and still does", r.told(true), "4 "+pass.String())
	r.says(r.e1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{}}})
	r.comes()
	r.Lost("e1", r.e1.Session, nil)
	wantWords(t, "the agent is lost", r.told(true), "5 "+pass.String())
	r.comes()
	wantWords(t, "and away", r.told(true), "6 "+pass.String())
	if f := r.Figures(); f.Firsts["passed"] != 9 || f.Firsts["accepted"] != 0 || len(f.Legs) != 0 {
		t.Errorf("counted: %v, %v", f.Firsts, f.Legs)
	}
}

// An agent has packets sent to itself alone, and those of its own lanes.
func TestAnAgentIsSentNothingThatIsNotItsOwn(t *testing.T) {
	r := newRewriting(t)
	for what, change := range map[string]func(*apiv1.BoostLeg){
		"another's address":   func(l *apiv1.BoostLeg) { l.At = "203.0.113.1:5000" },
		"a host's":            func(l *apiv1.BoostLeg) { l.At = "198.51.100.7:80" },
		"no port":             func(l *apiv1.BoostLeg) { l.At = "203.0.113.3:0" },
		"no address":          func(l *apiv1.BoostLeg) { l.At = "" },
		"another lane":        func(l *apiv1.BoostLeg) { l.Lane++ },
		"a client elsewhere":  func(l *apiv1.BoostLeg) { l.Client = "203.0.113.9:40000" },
		"a server elsewhere":  func(l *apiv1.BoostLeg) { l.Server = "192.0.2.7:80" },
		"a server of a zone":  func(l *apiv1.BoostLeg) { l.Server = "[fe80::1%eth0]:80" },
		"at the client's end": func(l *apiv1.BoostLeg) { l.Far = false },
	} {
		l := r.leg(9, "203.0.113.3:5000")
		change(l)
		r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: l}})
		if o := r.orders(r.w1); len(o) != 1 || o[0].GetLegReady().GetRefused() == "" {
			t.Errorf("%s: it is told %v", what, o)
		}
		wantWords(t, what, r.told(true))
	}
	r.comes()
	r.accepts("203.0.113.3:6000")
	wantWords(t, "a near agent names another's address", r.told(true), "1 "+pass.String())
}

// Who joins again says what it has: its connections keep their rules, and those that it has no more lose them. A new leader, and
// whoever drives the switches then, knows them by that.
func TestLegsOutliveStreams(t *testing.T) {
	r := newRewriting(t)
	far := r.leg(1, "203.0.113.3:5000")
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: far}})
	r.told(true)
	r.Lost("w1", r.w1.Session, nil)
	r.wait(time.Hour)
	wantWords(t, "away", r.told(true))
	far.Number = 0
	other := proto.CloneOf(far)
	other.Client, other.At = "192.0.2.2:40000", "203.0.113.3:5001"
	elsewhere := proto.CloneOf(far)
	elsewhere.Server, elsewhere.At = "203.0.113.77:80", "203.0.113.3:5002"
	r.w1 = r.enters("w1", far, other, elsewhere)
	wantWords(t, "back", r.told(true), "s2: 198.51.100.7:80 192.0.2.2:40000 at 203.0.113.3:5001")
	d := drive(r.network)
	d.read()
	if on := d.rules["s2"].GetLegs(); len(on) != 2 || on[0].Agent != "203.0.113.3:5000" || len(d.rules["s1"].GetLegs()) != 0 {
		t.Errorf("who drives switches now is told %v of s2, %v of s1", on, d.rules["s1"].GetLegs())
	}
	r.driver = d
	r.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_LegsOver{LegsOver: &apiv1.SteerLegs{Switch: "s2", Unset: d.rules["s2"].Legs[:1]}}})
	if n := r.has(); n != 1 {
		t.Errorf("a switch has taken one out by itself, and there are %d", n)
	}
	r.LostSwitches("boost", d.SteerSession, nil)
	r.w1 = r.enters("w1", other, far) // who drives switches comes later
	d = drive(r.network)
	if d.read(); len(d.rules["s2"].GetLegs()) != 2 {
		t.Errorf("who drives switches in the end is told %v of s2", d.rules["s2"].GetLegs())
	}
	r.driver = d
	r.w1 = r.enters("w1", other)
	wantWords(t, "it has one", r.told(true), "s2: no 198.51.100.7:80 192.0.2.1:40000")
	r.w1 = r.enters("w1")
	wantWords(t, "it has none", r.told(true), "s2: no 198.51.100.7:80 192.0.2.2:40000")
}

// Where nobody drives switches no leg is promised, and entries of sites without switches are refused.
func TestNothingIsRewrittenWithoutSwitches(t *testing.T) {
	r := newRewriting(t)
	r.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_State{State: &apiv1.SwitchState{Switch: "s2"}}})
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: r.leg(1, "203.0.113.3:5000")}})
	if o := r.orders(r.w1); len(o) != 1 || !strings.Contains(o[0].GetLegReady().GetRefused(), "no switch of site") {
		t.Errorf("its switch is away, and it is told %v", o)
	}
	r.LostSwitches("boost", r.driver.SteerSession, nil)
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: r.leg(1, "203.0.113.3:5000")}})
	if o := r.orders(r.w1); len(o) != 1 || !strings.Contains(o[0].GetLegReady().GetRefused(), "nobody drives") {
		t.Errorf("nobody drives the switches, and it is told %v", o)
	}
	n := newNetwork(t)
	n.sites()
	_, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24", Mode: "rewrite"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "no switches that could rewrite") {
		t.Errorf("%v", err)
	}
}

// Nobody waits for a switch that does not take its rules: the client's packet goes on, and the far agent is refused.
func TestALegIsGivenUpThatASwitchDoesNotTake(t *testing.T) {
	r := newRewriting(t)
	r.comes()
	r.accepts("203.0.113.1:6000")
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: r.leg(7, "203.0.113.3:5000")}})
	wantWords(t, "both ends", r.told(false), "s1: 192.0.2.1:40000 198.51.100.7:80 at 203.0.113.1:6000", "s2: 198.51.100.7:80 192.0.2.1:40000 at 203.0.113.3:5000")
	r.wait(legs.SwitchPatience)
	wantWords(t, "no switch has them", r.told(false), "1 "+pass.String(), "s1: no 192.0.2.1:40000 198.51.100.7:80", "s2: no 198.51.100.7:80 192.0.2.1:40000")
	if o := r.orders(r.w1); len(o) != 1 || o[0].GetLegReady().GetRefused() == "" || r.has() != 0 {
		t.Errorf("the far agent is told %v, and there are %d", o, r.has())
	}
}

// Two connections to the same end host have two ports of an agent's: one that is over makes room.
func TestAPortIsOfOneConnectionToAHost(t *testing.T) {
	r := newRewriting(t)
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: r.leg(1, "203.0.113.3:5000")}})
	r.told(true)
	r.orders(r.w1)
	other := r.leg(2, "203.0.113.3:5000")
	other.Client = "192.0.2.2:40000"
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: other}})
	wantWords(t, "the same port", r.told(true))
	if o := r.orders(r.w1); len(o) != 1 || !strings.Contains(o[0].GetLegReady().GetRefused(), "already") {
		t.Errorf("it is told %v", o)
	}
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_LegOver{LegOver: &apiv1.BoostLegOver{Far: true, Client: aClient, Server: aServer, At: "203.0.113.3:5000"}}})
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: other}})
	wantWords(t, "once the first is over", r.told(true), "s2: 198.51.100.7:80 192.0.2.2:40000 at 203.0.113.3:5000", "s2: no 198.51.100.7:80 192.0.2.1:40000")
}

// Where who drives the switches goes, all first packets have gone on: what agents decide about them then counts for nothing. A leg
// whose agent no switch hears any more is over, though its end host is heard.
func TestFirstPacketsAreForgottenWithTheirSwitches(t *testing.T) {
	r := newRewriting(t)
	r.comes()
	r.LostSwitches("boost", r.driver.SteerSession, nil)
	r.driver = drive(r.network)
	r.accepts("203.0.113.1:6000")
	if words := r.told(true); len(words) != 0 || r.has() != 0 {
		t.Errorf("told %q; there are %d", words, r.has())
	}
	r.says(r.w1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: r.leg(1, "203.0.113.3:5000")}})
	r.told(true)
	silent := &apiv1.SteerLeg{Host: aServer, Other: aClient, Agent: "203.0.113.3:5000", Silent: true}
	r.report(&apiv1.SteerReport{Report: &apiv1.SteerReport_LegsOver{LegsOver: &apiv1.SteerLegs{Switch: "s2", Unset: []*apiv1.SteerLeg{silent}}}})
	wantWords(t, "the agent is heard no more", r.told(true), "s2: no 198.51.100.7:80 192.0.2.1:40000")
}

// A session of a rewritten lane has no pins, also while its client is not there and nobody knows at which address it will be; one that
// was steered has.
func TestOnlyWhatIsSteeredIsPinned(t *testing.T) {
	r := newRewriting(t)
	r.driver.sees("e1", "w1")
	r.driver.settle()
	tell := func(opening, rewritten bool) int {
		r.says(r.e1, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Changed: []*apiv1.BoostSession{
			{Number: 2, Far: "w1", Lane: r.lane.Number, Client: aClient, Server: aServer, Opening: opening, Rewritten: rewritten},
		}}}})
		return len(r.driver.to("s1", pinned))
	}
	for _, c := range []struct {
		opening, rewritten bool
		pins               int
	}{{true, false, 0}, {false, true, 0}, {false, false, 1}, {false, true, 0}} {
		if got := tell(c.opening, c.rewritten); got != c.pins {
			t.Errorf("opening %v, rewritten %v: %d pins, want %d", c.opening, c.rewritten, got, c.pins)
		}
	}
}

// Agents are planned for connections whose family they have an address of: else each would wait for a port that its near agent
// cannot have.
func TestConnectionsAreRewrittenToAgentsOfTheirFamily(t *testing.T) {
	r := newRewriting(t)
	six := &apiv1.BoostEntry{Name: "six", Client: "2001:db8:1::/64", Server: "2001:db8:2::/64", Mode: "rewrite"}
	for _, s := range []*apiv1.BoostSite{
		{Name: "east", Prefixes: []string{"192.0.2.0/24", six.Client}, Agents: []string{"e1", "e2"}, Switches: []string{"s1"}},
		{Name: "west", Prefixes: []string{"198.51.100.0/24", six.Server}, Agents: []string{"w1", "w2"}, Switches: []string{"s2"}},
	} {
		if _, err := r.API().SetBoostSite(t.Context(), connect.NewRequest(s)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.allow(six); err != nil {
		t.Fatal(err)
	}
	entry := func() *apiv1.BoostEntry {
		r.driver.settle()
		all := r.list().Entries
		return all[slices.IndexFunc(all, func(e *apiv1.BoostEntry) bool { return e.Name == six.Name })]
	}
	if e := entry(); e.State != unserved || !strings.Contains(e.Why, "with an address of IPv6") {
		t.Errorf("of agents on IPv4: %v", e)
	}
	for i, name := range []string{"e1", "w1"} {
		j := joinOf(name)
		j.Rewrites, j.Doors = true, []string{j.Door, fmt.Sprintf("[2001:db8:9::%d]:23731", i+1)}
		r.network.joinAs(j)
	}
	if e := entry(); e.State == unserved || len(e.Lanes) == 0 {
		t.Errorf("once they have addresses of both: %v", e)
	}
}
