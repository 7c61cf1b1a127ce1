package legs

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A fake is a network of two sites, each with an agent and a switch: near with e and s1, far with w and s2.
type fake struct {
	now        time.Time
	timers     []timer
	generation uint64
	up         map[string]bool
	has        map[string]uint64 // generation of legs that a switch has
	driven     bool
	deaf       map[string]bool // agents that are away

	orders map[string][]*apiv1.BoostOrder // by agent, not read yet
	rules  map[string]map[string]string   // by switch, agent's port by connection
	last   map[string]uint64              // generation that a switch was told last
	firsts map[uint64][]apiv1.BoostVerdict
	told   []string
}

type timer struct {
	at time.Time
	f  func()
}

func newFake() (*fake, *Legs) {
	n := &fake{
		now: time.Unix(1_000, 0), up: map[string]bool{"s1": true, "s2": true}, has: map[string]uint64{}, driven: true, deaf: map[string]bool{},
		orders: map[string][]*apiv1.BoostOrder{}, rules: map[string]map[string]string{"s1": {}, "s2": {}}, last: map[string]uint64{}, firsts: map[uint64][]apiv1.BoostVerdict{},
	}
	return n, New(n, 10*time.Second)
}

var sites = map[string]struct {
	site   string
	has    []string
	prefix netip.Prefix
	at     netip.Addr
}{
	"e": {"near", []string{"s1"}, netip.MustParsePrefix("192.0.2.0/24"), netip.MustParseAddr("203.0.113.1")},
	"w": {"far", []string{"s2"}, netip.MustParsePrefix("198.51.100.0/24"), netip.MustParseAddr("203.0.113.3")},
}

func (n *fake) Site(agent string) string { return sites[agent].site }

func (n *fake) At(host netip.Addr) string {
	for _, s := range sites {
		if s.prefix.Contains(host) {
			return s.site
		}
	}
	return ""
}

func (n *fake) Switches(site string) []string {
	for _, s := range sites {
		if s.site == site {
			return s.has
		}
	}
	return nil
}

func (n *fake) Switch(name string) (up bool, has uint64)             { return n.up[name], n.has[name] }
func (n *fake) Addresses(agent string) []netip.Addr                  { return []netip.Addr{sites[agent].at} }
func (n *fake) Listens(agent string) bool                            { return !n.deaf[agent] }
func (n *fake) Driven() bool                                         { return n.driven }
func (n *fake) Generation() uint64                                   { n.generation++; return n.generation }
func (n *fake) Tell(agent, text string)                              { n.told = append(n.told, agent+": "+text) }
func (n *fake) After(d time.Duration, f func())                      { n.timers = append(n.timers, timer{n.now.Add(d), f}) }
func (n *fake) Now() time.Time                                       { return n.now }
func (n *fake) MayHave(_ string, _ uint64, _, _ netip.AddrPort) bool { return true }

func (n *fake) Order(agent string, o *apiv1.BoostOrder) {
	if !n.deaf[agent] {
		n.orders[agent] = append(n.orders[agent], o)
	}
}

func (n *fake) Steer(o *apiv1.SteerOrder) {
	if !n.driven {
		return
	}
	switch o := o.Order.(type) {
	case *apiv1.SteerOrder_First:
		n.firsts[o.First.Number] = append(n.firsts[o.First.Number], o.First.Verdict)
	case *apiv1.SteerOrder_Legs:
		n.last[o.Legs.Switch] = o.Legs.Generation
		for _, l := range o.Legs.Unset {
			if at := n.rules[o.Legs.Switch]; at[l.Host+" "+l.Other] == l.Agent {
				delete(at, l.Host+" "+l.Other)
			}
		}
		for _, l := range o.Legs.Set {
			n.rules[o.Legs.Switch][l.Host+" "+l.Other] = l.Agent
		}
	}
}

// passes lets time pass, timer by timer.
func (n *fake) passes(d time.Duration) {
	for until := n.now.Add(d); ; {
		first := 0
		for i := range n.timers {
			if n.timers[i].at.Before(n.timers[first].at) {
				first = i
			}
		}
		if len(n.timers) == 0 || n.timers[first].at.After(until) {
			n.now = until
			return
		}
		next := n.timers[first]
		n.timers, n.now = slices.Delete(n.timers, first, first+1), next.at
		next.f()
	}
}

// read are the orders of an agent that nobody has read.
func (n *fake) read(agent string) []*apiv1.BoostOrder {
	all := n.orders[agent]
	delete(n.orders, agent)
	return all
}

func client(i int) netip.AddrPort {
	return netip.MustParseAddrPort(fmt.Sprintf("192.0.2.%d:%d", 1+i%4, 40_000+i/4))
}

var server = netip.MustParseAddrPort("198.51.100.7:80")

func farLeg(number uint64, i int) *apiv1.BoostLeg {
	return &apiv1.BoostLeg{Number: number, Lane: 1, Far: true, Client: client(i).String(), Server: server.String(), At: fmt.Sprintf("203.0.113.3:%d", 5_000+i)}
}

// sorted are all legs in the same order each time: what a seed finds it finds again.
func (x *Legs) sorted() []*leg {
	return slices.SortedFunc(maps.Values(x.all), func(a, b *leg) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), a.Client.Compare(b.Client))
	})
}

// Whoever floods a switch with first packets, or an agent that asks for ever more legs, has as many as may be.
func TestNoMoreThanMay(t *testing.T) {
	n, x := newFake()
	for i := range 2 * MostFirsts {
		x.First(uint64(i+1), "e", 1, client(i), server)
	}
	if waits, passed := len(x.firsts.asked), len(n.firsts); waits != MostFirsts || passed != MostFirsts {
		t.Errorf("%d first packets wait, %d went on; want %d each", waits, passed, MostFirsts)
	}
	refused := 0
	for i := range Most + 10 {
		x.Ask("w", farLeg(uint64(i+1), i))
	}
	x.Flush()
	for _, o := range n.read("w") {
		if strings.Contains(o.GetLegReady().GetRefused(), "as many as it may") {
			refused++
		}
	}
	if refused != 10 || len(x.On("s2")) != Most {
		t.Errorf("%d are refused, and s2 has %d; want 10 and %d", refused, len(x.On("s2")), Most)
	}
	x.Forget("w")
	x.Flush()
	if len(n.rules["s2"]) != 0 || len(x.BySite()) != 0 {
		t.Errorf("its agent is forgotten, and s2 has %d rules of it", len(n.rules["s2"]))
	}
}

// In any order of what agents, clients and switches do: each first packet that waits is decided about once; a switch has the rules
// that it was told of, as they are told to one that comes anew; no connection is accepted whose switches do not have its rules; and
// two connections of an agent to one host never share a port.
func TestInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n, x := newFake()
		var syns uint64
		held := map[netip.AddrPort]uint64{} // the first packet of each client that is to be decided about
		asked := map[uint64]Key{}           // by number of the agent's question
		for step := range 200 {
			switch i := r.IntN(12); r.IntN(11) {
			case 0, 1, 2:
				if !n.driven {
					break
				}
				// Who drives the switches keeps one of each client, and lets it go on by itself after a while.
				if syn, waits := held[client(i)]; waits && len(n.firsts[syn]) == 0 && r.IntN(4) > 0 {
					break
				}
				syns++
				held[client(i)] = syns
				x.First(syns, "e", 1, client(i), server)
			case 3, 4:
				orders := n.read("e") // it is not bound to decide in the order in which it was asked
				r.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
				for _, o := range orders {
					if s := o.GetSyn(); s != nil {
						verdict := apiv1.BoostVerdict(1 + r.IntN(3))
						x.Decided("e", &apiv1.BoostFirst{Number: s.Number, Verdict: verdict, At: fmt.Sprintf("203.0.113.1:%d", 6_000+r.IntN(6))})
					}
				}
			case 5:
				m := farLeg(uint64(step+1), i)
				m.At = fmt.Sprintf("203.0.113.3:%d", 5_000+r.IntN(6))
				asked[m.Number] = Key{"w", true, client(i), server}
				x.Ask("w", m)
			case 6:
				if all := x.sorted(); len(all) > 0 {
					l := all[r.IntN(len(all))]
					x.Over(l.Agent, &apiv1.BoostLegOver{Far: l.Far, Client: l.Client.String(), Server: l.Server.String(), At: l.at.String()})
				}
			case 7: // a switch has what it was told, or is away for a while
				name := []string{"s1", "s2"}[r.IntN(2)]
				n.up[name] = r.IntN(4) > 0
				if n.up[name] {
					n.has[name] = n.last[name]
				}
				x.SwitchesChanged()
			case 8:
				agent := []string{"e", "w"}[r.IntN(2)]
				if n.deaf[agent] = !n.deaf[agent]; n.deaf[agent] {
					x.Lost(agent)
					break
				}
				var has []*apiv1.BoostLeg // some of what it had, at other ports: another process of it
				for _, l := range x.sorted() {
					if l.Agent == agent && r.IntN(2) == 0 {
						at := netip.AddrPortFrom(l.at.Addr(), uint16(7_000+r.IntN(6)))
						has = append(has, &apiv1.BoostLeg{Far: l.Far, Client: l.Client.String(), Server: l.Server.String(), At: at.String()})
					}
				}
				x.Joined(agent, has)
			case 9:
				if n.driven = r.IntN(8) > 0; !n.driven {
					clear(held) // whoever drives the switches next knows none of them
					x.Undriven()
					x.Flush()
					n.driven, n.rules = true, map[string]map[string]string{"s1": {}, "s2": {}}
					for name := range n.rules { // as the next one is told
						for _, l := range x.On(name) {
							n.rules[name][l.Host+" "+l.Other] = l.Agent
						}
					}
				}
			case 10:
				n.passes(time.Duration(r.IntN(4_000)) * time.Millisecond)
			}
			x.Flush()
			for _, name := range []string{"s1", "s2"} {
				want := map[string]string{}
				for _, l := range x.On(name) {
					want[l.Host+" "+l.Other] = l.Agent
				}
				if got := n.rules[name]; !maps.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %s has %v, and is to have %v", seed, step, name, got, want)
				}
			}
			ports := map[string]Key{}
			for key, l := range x.all {
				host, _ := l.hosts()
				port := host.String() + " " + l.at.String()
				if other, is := ports[port]; is {
					t.Fatalf("seed %d, step %d: %v and %v have one port to one host", seed, step, key, other)
				}
				ports[port] = key
				if l.syn == 0 && l.number == 0 || x.waiting[l] {
					continue
				}
				t.Fatalf("seed %d, step %d: %v has its rules, and who waits for it is not told", seed, step, key)
			}
			for _, o := range n.read("w") {
				ready := o.GetLegReady()
				if l := x.all[asked[ready.GetNumber()]]; ready != nil && ready.Refused == "" && l != nil && x.waiting[l] && l.number == ready.Number {
					t.Fatalf("seed %d, step %d: a leg is ready whose switches do not have its rules", seed, step)
				}
			}
		}
		n.passes(time.Minute)
		for _, syn := range held {
			if len(n.firsts[syn]) == 0 {
				t.Fatalf("seed %d: first packet %d waits for ever", seed, syn)
			}
		}
		for syn, verdicts := range n.firsts {
			if len(verdicts) > 1 {
				t.Fatalf("seed %d: of first packet %d was decided %v", seed, syn, verdicts)
			}
		}
	}
}
