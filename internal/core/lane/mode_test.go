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

// By a machine that forwards nothing of a family nothing of it is sent that may have to go on; what is rewritten does not.
func TestNothingIsSentByWhereItWouldEnd(t *testing.T) {
	s := State{Sites: []Site{east, west}, Entries: []Entry{files}, Agents: agents("e1", "e2", "w1")}
	s.Agents[0].Stops, s.Agents[2].Stops = IPv4, IPv4
	if r := Plan(s); len(r.Lanes) == 0 {
		t.Errorf("of sites without switches, where all packets come by agents whatever is planned: %+v", r)
	}
	for i := range s.Sites {
		s.Sites[i].Switched, s.Sites[i].Agents = true, 2
	}
	for i := range s.Agents {
		s.Agents[i].Seen, s.Agents[i].Rewrites = true, IPv4
	}
	s.Agents[2].Stops = 0
	r := Plan(s)
	if len(r.Lanes) == 0 || slices.ContainsFunc(r.Lanes, func(l Lane) bool { return l.Near != "e2" }) {
		t.Errorf("beside one whose machine forwards: %+v", r)
	}
	s.Agents[2].Stops = IPv6
	if again := Plan(s); len(again.Lanes) != len(r.Lanes) {
		t.Errorf("the far one forwards no IPv6, of which the entry is not: %+v", again)
	}
	s.Agents[2].Stops = IPv4
	want := `site "west" has no agent that takes connections and whose machine forwards IPv4; at w1: sysctl -w net.ipv4.ip_forward=1`
	if r := Plan(s); len(r.Lanes) != 0 || len(r.Unserved) != 1 || r.Unserved[0].Why != want {
		t.Errorf("the far one forwards nothing: %+v", r)
	}
	s.Agents[2].Here = false // and nobody would be helped by its forwarding
	if r := Plan(s); len(r.Lanes) != 0 || len(r.Unserved) != 1 || strings.Contains(r.Unserved[0].Why, "forwards") {
		t.Errorf("the far one is away: %+v", r)
	}
	s.Agents[2].Here = true
	s.Entries[0].Rewrite = true
	if r := Plan(s); len(r.Lanes) == 0 {
		t.Errorf("of connections that are rewritten: %+v", r)
	}
}

func TestFamiliesAreVersionsOfIP(t *testing.T) {
	for _, versions := range [][]uint32{nil, {4}, {6}, {4, 6}} {
		if f := Families(versions); !slices.Equal(f.Versions(), versions) {
			t.Errorf("%v are %v", versions, f.Versions())
		}
	}
	both := Families([]uint32{6, 5, 4, 4, 0})
	if both != IPv4|IPv6 || both.String() != "IPv4 and IPv6" || both.Forwarding() != "sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1" {
		t.Errorf("%v: %s", both, both.Forwarding())
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
