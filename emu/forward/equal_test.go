package forward_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// A world is a random network in one of the modes; two worlds of one plan differ in nothing else.
type world struct {
	*emu.Net
	routers []*forward.Forwarder
	nodes   []*emu.Router
	probes  []*probe
	classes *forward.Classes
	now     time.Duration
}

// A plan is what is done to a world.
type plan struct {
	routers int
	links   [][2]int
	delays  []time.Duration
	steps   []func(t testing.TB, w *world)
}

func (p *plan) world(t testing.TB, classes bool) *world {
	w := &world{Net: emu.New(emu.Options{Virtual: true, Memory: emu.Memory{Small: 1 << 12, Large: 16}, Log: t.Logf})}
	w.Trace()
	for i := range p.routers {
		f, err := forward.New(forward.Config{Addresses: []netip.Addr{addr(fmt.Sprintf("fd00::%x", i+1)), addr(fmt.Sprint("10.9.0.", i+1))}, LPM: !classes})
		must(t, err)
		w.routers, w.nodes = append(w.routers, f), append(w.nodes, w.Router(fmt.Sprint("r", i), f))
		one := &probe{}
		one.router = w.Router(fmt.Sprint("p", i), one)
		w.probes = append(w.probes, one)
		_, err = w.Link(one.router, w.nodes[i], [2]emu.Params{})
		must(t, err)
	}
	for i, ends := range p.links {
		d := emu.Params{Delay: p.delays[i]}
		_, err := w.Link(w.nodes[ends[0]], w.nodes[ends[1]], [2]emu.Params{d, d})
		must(t, err)
	}
	must(t, w.Run(0))
	if classes {
		var err error
		w.classes, err = forward.Compile(w.Net)
		must(t, err)
	}
	return w
}

// prefixes that are within each other, and addresses in them.
var (
	prefixes = []string{"::/0", "fd00::/8", "fd0b::/16", "fd0b:1::/32", "fd0b:1:2::/48", "fd0b::/64", "fd0b::1/128", "fd00::1/128", "fd00::2/128",
		"fd0c::/16", "0.0.0.0/0", "10.0.0.0/8", "10.0.2.0/24", "10.0.2.128/25", "10.0.2.1/32", "10.9.0.2/32"}
	addresses = []string{"fd0b::1", "fd0b::2", "fd0b:1::1", "fd0b:1:2::1", "fd0c::1", "fd00::2", "2001:db8::1", "10.0.2.1", "10.0.2.200", "10.9.0.2", "192.0.2.1"}
)

func drawPlan(t *rapid.T) *plan {
	p := &plan{routers: rapid.IntRange(2, 6).Draw(t, "routers")}
	ports := make([]int, p.routers)
	for i := range ports {
		ports[i] = 1
	}
	node := rapid.IntRange(0, p.routers-1)
	for range rapid.IntRange(1, 10).Draw(t, "links") {
		a, b := node.Draw(t, "a"), node.Draw(t, "b")
		p.links = append(p.links, [2]int{a, b})
		p.delays = append(p.delays, time.Duration(rapid.IntRange(0, 3).Draw(t, "delay"))*time.Millisecond)
		ports[a]++
		ports[b]++
	}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		p.steps = append(p.steps, drawStep(t, p, node, ports))
	}
	return p
}

func drawStep(t *rapid.T, p *plan, node *rapid.Generator[int], ports []int) func(testing.TB, *world) {
	i := node.Draw(t, "router")
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 0, 1:
		r := drawRoute(t, ports[i])
		return func(t testing.TB, w *world) { must(t, w.routers[i].Add(r)) }
	case 2:
		var all []forward.Route
		for range rapid.IntRange(0, 12).Draw(t, "routes") {
			all = append(all, drawRoute(t, ports[i]))
		}
		return func(t testing.TB, w *world) { must(t, w.routers[i].SetRoutes(all)) }
	case 3:
		one := prefix(rapid.SampledFrom(prefixes).Draw(t, "prefix"))
		return func(_ testing.TB, w *world) { w.routers[i].Delete(one) }
	case 4:
		link, up := rapid.IntRange(0, len(p.links)-1).Draw(t, "link"), rapid.Bool().Draw(t, "up")
		return func(_ testing.TB, w *world) { w.Links()[p.routers+link].SetUp([2]bool{up, up}) }
	case 5:
		return func(t testing.TB, w *world) {
			if w.classes != nil {
				must(t, w.classes.Refresh())
			}
		}
	default:
		to, hop, port := rapid.SampledFrom(addresses).Draw(t, "to"), rapid.Byte().Draw(t, "hop"), rapid.Uint16().Draw(t, "port")
		wait := time.Duration(rapid.IntRange(0, 2000).Draw(t, "us")) * time.Microsecond
		return func(t testing.TB, w *world) {
			from := fmt.Sprintf("fd00::%x", i+1)
			if addr(to).Is4() {
				from = fmt.Sprint("10.9.0.", i+1)
			}
			w.probes[i].send(t, traffic.Datagram(addr(from), addr(to), hop, port, 64))
			w.now += wait
			must(t, w.Run(w.now))
		}
	}
}

func drawRoute(t *rapid.T, ports int) forward.Route {
	r := forward.Route{Prefix: prefix(rapid.SampledFrom(prefixes).Draw(t, "prefix")), Kind: forward.Kind(rapid.IntRange(0, 8).Draw(t, "kind"))}
	if r.Kind > forward.Unreachable {
		r.Kind = forward.Unicast
	}
	for range rapid.IntRange(1, 4).Draw(t, "hops") {
		r.Hops = append(r.Hops, forward.NextHop{Port: rapid.IntRange(0, ports-1).Draw(t, "port")})
	}
	return r
}

// Whatever the network, its traffic and the changes of its routes, classes are the tables: the same packets arrive by
// the same links at the same times.
func TestClassesForwardAsTables(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var sums [2]uint64
		var drops [2][]forward.Counters
		for i := range sums {
			w := p.world(t, i == 1)
			for _, step := range p.steps {
				step(t, w)
			}
			w.now += time.Second
			must(t, w.Run(w.now))
			var err error
			sums[i], err = w.Sum()
			must(t, err)
			for _, f := range w.routers {
				drops[i] = append(drops[i], f.Counters())
			}
			must(t, w.Close())
		}
		if sums[0] != sums[1] || fmt.Sprint(drops[0]) != fmt.Sprint(drops[1]) {
			rt.Fatalf("traces %x and %x of %d routers, links %v\ncounters %+v\nand      %+v", sums[0], sums[1], p.routers, p.links, drops[0], drops[1])
		}
	})
}
