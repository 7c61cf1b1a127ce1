package lane

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var places = map[string]Place{
	"e1": {"s1", "to-e1", [6]byte{2, 1}}, "e2": {"s1", "to-e2", [6]byte{2, 2}},
	"w1": {"s2", "to-w1", [6]byte{2, 3}}, "w2": {"s2", "to-w2", [6]byte{2, 4}},
}

// finds is the agent to which a switch sends a segment; "": it goes on as it would. It is an error where two rules of the
// same rank would send it to different ones.
func finds(rules []Rule, at string, from, to netip.AddrPort) (agent string, err error) {
	var best *Rule
	for i := range rules {
		r := &rules[i]
		if r.Switch != at || !r.Source.Contains(from.Addr()) || !r.Destination.Contains(to.Addr()) ||
			from.Port()&r.From.Mask != r.From.Value || to.Port()&r.To.Mask != r.To.Value {
			continue
		}
		if best != nil && best.Kind == r.Kind && best.Agent != r.Agent {
			err = fmt.Errorf("%v and %v both take %v to %v", *best, *r, from, to)
		}
		if best == nil || r.Kind > best.Kind {
			best = r
		}
	}
	if best == nil {
		return "", err
	}
	return best.Agent, err
}

// Both ways of a connection go to the agents of its lane, whichever port it has; another one's do not.
func TestBothWaysOfALanesConnectionsGoToItsAgents(t *testing.T) {
	s := State{Now: noon, Sites: []Site{east, west}, Entries: []Entry{files}, Agents: agents("e1", "e2", "w1", "w2")}
	lanes := Plan(s).Lanes
	rules := Steer(Steering{Lanes: lanes, Places: places})
	if len(rules) != 2*len(lanes) {
		t.Errorf("%d rules for %d lanes", len(rules), len(lanes))
	}
	server := netip.MustParseAddrPort("198.51.100.7:443")
	for port := range uint16(64) {
		client := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.9"), 40000+port)
		i := slices.IndexFunc(lanes, func(l Lane) bool { return l.Takes(client, server) })
		for _, way := range []struct {
			at, want string
			from, to netip.AddrPort
		}{{"s1", lanes[i].Near, client, server}, {"s2", lanes[i].Far[0], server, client}, {"s2", "", client, server}, {"s1", "", server, client}} {
			if got, err := finds(rules, way.at, way.from, way.to); err != nil || got != way.want {
				t.Errorf("at %s %v to %v goes to %q, want %q (%v)", way.at, way.from, way.to, got, way.want, err)
			}
		}
	}
	if got, _ := finds(rules, "s1", netip.MustParseAddrPort("192.0.2.9:40000"), netip.MustParseAddrPort("198.51.100.7:80")); got != "" {
		t.Errorf("another port goes to %s", got)
	}
}

// Whatever becomes of lanes, places and entries: what a live connection's ends send goes to its own two agents.
func TestConnectionsStayAtTheirAgents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		site := func(s Site) Site { s.Switched, s.Agents = true, 2; return s }
		s := State{Now: noon, Sites: []Site{site(east), site(west)}, Entries: []Entry{files}, Agents: agents("e1", "e2", "w1", "w2")}
		for i := range s.Agents {
			s.Agents[i].Seen = true
		}
		var sessions []Session
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			a := &s.Agents[rapid.IntRange(0, len(s.Agents)-1).Draw(t, "agent")]
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				a.Draining = !a.Draining
			case 1:
				a.Here = !a.Here
			case 2:
				a.Seen = !a.Seen
			case 3: // the entry goes, or comes again with other connections
				if s.Entries = nil; rapid.Bool().Draw(t, "again") {
					e := files
					e.Port = uint16(rapid.SampledFrom([]int{0, 80, 443}).Draw(t, "port"))
					s.Entries = []Entry{e}
				}
			}
			s.Before = Plan(s).Lanes
			at := maps.Clone(places)
			for _, a := range s.Agents {
				if !a.Seen {
					delete(at, a.Name)
				}
			}
			rules := Steer(Steering{Lanes: s.Before, Sessions: sessions, Places: at})
			for _, x := range sessions {
				for _, way := range []struct {
					agent    string
					from, to netip.AddrPort
				}{{x.Near, x.Client, x.Server}, {x.Far, x.Server, x.Client}} {
					place, is := at[way.agent]
					if !is {
						continue // nobody knows where to send it
					}
					if got, err := finds(rules, place.Switch, way.from, way.to); err != nil || got != way.agent {
						t.Fatalf("session %v: %v to %v goes to %q (%v)", x, way.from, way.to, got, err)
					}
				}
			}
			for _, l := range s.Before {
				if len(l.Far) != 1 {
					t.Fatalf("lane %v has several far agents; the switch sends answers to one", l)
				}
				client := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(1+len(sessions))<<8|l.Slot)
				sessions = append(sessions, Session{Lane: l.Number, Client: client, Server: netip.AddrPortFrom(netip.MustParseAddr("198.51.100.7"), max(l.Port, 25)), Near: l.Near, Far: l.Far[0]})
			}
		}
	})
}

// Entries that lead both ways between two prefixes by any port are refused where a switch would have to choose.
func TestEntriesBothWaysAreRefusedWhereASwitchCannotTellThem(t *testing.T) {
	there := Entry{Name: "there", Client: netip.MustParsePrefix("192.0.2.0/24"), Server: netip.MustParsePrefix("198.51.100.0/24")}
	back := Entry{Name: "back", Client: there.Server, Server: there.Client}
	site := func(s Site, agents int) Site { s.Switched, s.Agents = true, agents; return s }
	for _, c := range []struct {
		agents     int
		port, back uint16
		refused    bool
	}{{1, 0, 0, false}, {2, 0, 0, true}, {2, 443, 0, true}, {2, 443, 80, false}} {
		e, o := there, back
		e.Port, o.Port = c.port, c.back
		if err := Check([]Site{site(east, c.agents), site(west, 1)}, []Entry{e, o}); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
