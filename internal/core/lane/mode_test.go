package lane

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestALaneSaysHowItsConnectionsComeToAgents(t *testing.T) {
	for _, text := range append([]string{""}, Modes...) {
		rewrite, err := ParseMode(text)
		if err != nil || text != "" && Mode(rewrite) != text {
			t.Errorf("%q is read as %v, %v, and written as %q", text, rewrite, err, Mode(rewrite))
		}
	}
	if _, err := ParseMode("bend"); err == nil {
		t.Error("nobody complains about another word")
	}
	e := files
	e.Rewrite = true
	if err := Check([]Site{east, west}, []Entry{e}); err == nil || !strings.Contains(err.Error(), "no switches that could rewrite") {
		t.Errorf("sites without switches: %v", err)
	}
	at := func(s Site) Site { s.Switched, s.Agents = true, 2; return s }
	s := State{Sites: []Site{at(east), at(west)}, Entries: []Entry{e}, Agents: agents("e1", "w1", "w2")}
	if err := Check(s.Sites, s.Entries); err != nil {
		t.Fatal(err)
	}
	if r := Plan(s); len(r.Lanes) != 0 || len(r.Unserved) != 1 || !strings.Contains(r.Unserved[0].Why, "rewritten") {
		t.Errorf("of agents that know no rewriting: %+v", r)
	}
	for i := range s.Agents {
		s.Agents[i].Rewrites = IPv6
	}
	if r := Plan(s); len(r.Lanes) != 0 || len(r.Unserved) != 1 || !strings.Contains(r.Unserved[0].Why, "with an address of IPv4") {
		t.Errorf("of agents that hosts on IPv4 could not be rewritten to: %+v", r)
	}
	for i := range s.Agents {
		s.Agents[i].Rewrites = IPv4 // no switch has seen any of them
	}
	s.Agents[2].Rewrites |= IPv6
	r := Plan(s)
	if len(r.Lanes) != 8 || !r.Lanes[0].Rewrite || len(r.Lanes[0].Far) != 2 {
		t.Errorf("%+v", r)
	}
	s.Agents[0].Here = false // and nobody could tell switches of its ports
	if r := Plan(s); len(r.Lanes) != 0 {
		t.Errorf("the near agent is away: %+v", r)
	}
}

// Steer is of lanes that are steered: who rewrites has rules of its own.
func TestRewrittenLanesAreNotSteered(t *testing.T) {
	l := Lane{Number: 1, Client: files.Client, Server: files.Server, Near: "e1", Far: []string{"w1"}, Rewrite: true}
	rules := Steer(Steering{Lanes: []Lane{l}, Places: map[string]Place{"e1": {Switch: "s"}, "w1": {Switch: "s"}}})
	if slices.ContainsFunc(rules, func(r Rule) bool { return r.Lane == 1 }) {
		t.Errorf("%+v", rules)
	}
}

// What was steered before its entry is rewritten has pins until it ends, and the lane of before is another one.
func TestWhatWasSteeredStaysSo(t *testing.T) {
	was := Lane{Number: 1, Client: files.Client, Server: files.Server, Near: "e1", Far: []string{"w1"}}
	now := was
	now.Rewrite = true
	s := Session{Lane: 1, Client: netip.MustParseAddrPort("192.0.2.1:40000"), Server: netip.MustParseAddrPort("198.51.100.7:443"), Near: "e1", Far: "w1"}
	if !was.Kept(&s) || now.Kept(&s) || was.Same(&now) {
		t.Error("a lane that is rewritten keeps what was steered, or is the same")
	}
	rules := Steer(Steering{Lanes: []Lane{now}, Sessions: []Session{s}, Places: map[string]Place{"e1": {Switch: "s"}, "w1": {Switch: "s"}}})
	if len(rules) != 2 || rules[0].Kind != Pinned || rules[1].Kind != Pinned {
		t.Errorf("%+v", rules)
	}
}
