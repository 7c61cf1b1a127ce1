package plan

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/sid"
)

// square is r1 - r2 - r4 of cost 2 and r1 - r3 - r4 of cost 3, h1 at r1 and h4 at r4.
func square() *Plan {
	p, space := New(sid.DefaultSpace()), sid.DefaultSpace()
	for i, name := range []string{"r1", "r2", "r3", "r4", "r5"} {
		p.SetRouter(Router{Name: name, Locator: space.Locator(uint16(i+1) << 8)})
	}
	link := func(a, b string, cost uint32) Link {
		return Link{Port: "to-" + b, Peer: b, PeerPort: "to-" + a, Cost: cost}
	}
	p.SetLinks("r1", []Link{link("r1", "r2", 1), link("r1", "r3", 2)})
	p.SetLinks("r2", []Link{link("r2", "r1", 1), link("r2", "r4", 1)})
	p.SetLinks("r3", []Link{link("r3", "r1", 2), link("r3", "r4", 1)})
	p.SetLinks("r4", []Link{link("r4", "r2", 1), link("r4", "r3", 1)})
	for i, at := range map[int]string{1: "r1", 4: "r4"} {
		p.SetHost(Host{Name: "h" + at[1:], Router: at, Port: "eth0", Locator: space.Locator(uint16(i)<<8 | 1), LinkLocal: netip.MustParseAddr("fe80::1")})
	}
	p.SetHost(Host{Name: "lost", Router: "r9", Port: "eth0", Locator: space.Locator(9<<8 | 1), LinkLocal: netip.MustParseAddr("fe80::1")})
	return p
}

func TestAWayIsTheCheapest(t *testing.T) {
	p := square()
	for _, c := range []struct {
		from, to string
		want     Way
	}{
		{"h1", "h4", Way{[]Hop{{"r1", "eth0", "to-r2"}, {"r2", "to-r1", "to-r4"}, {"r4", "to-r2", "eth0"}}, 2}},
		{"r1", "r4", Way{[]Hop{{"r1", "", "to-r2"}, {"r2", "to-r1", "to-r4"}, {"r4", "to-r2", ""}}, 2}},
		{"h4", "r3", Way{[]Hop{{"r4", "eth0", "to-r3"}, {"r3", "to-r4", ""}}, 1}},
		{"h1", "h1", Way{[]Hop{{"r1", "eth0", "eth0"}}, 0}},
		{"r5", "r5", Way{[]Hop{{"r5", "", ""}}, 0}},
	} {
		got, err := p.Way(c.from, c.to)
		if err != nil || got.Cost != c.want.Cost || !slices.Equal(got.Hops, c.want.Hops) {
			t.Errorf("%s to %s: %+v, %v; want %+v", c.from, c.to, got, err, c.want)
		}
	}
}

func TestWhereNoWayLeadsIsSaid(t *testing.T) {
	p := square()
	for _, c := range []struct {
		from, to string
		want     error
	}{{"h1", "r5", ErrNoWay}, {"r5", "h1", ErrNoWay}, {"h1", "lost", ErrNoWay}, {"nobody", "h1", ErrNoEnd}, {"h1", "", ErrNoEnd}} {
		if w, err := p.Way(c.from, c.to); !errors.Is(err, c.want) {
			t.Errorf("%s to %s: %+v, %v; want %v", c.from, c.to, w, err, c.want)
		}
	}
}

// What a way says is what routers are told: at each hop the route to the goal's block leaves by the port.
func TestAWayFollowsTheRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, space := New(sid.DefaultSpace()), sid.DefaultSpace()
		names := []string{"a", "b", "c", "d", "e", "f"}
		links := map[string][]Link{}
		for i, name := range names {
			p.SetRouter(Router{Name: name, Locator: space.Locator(uint16(i+1) << 8)})
			for _, other := range names[:i] {
				if cost := rapid.Uint32Range(0, 3).Draw(t, "cost"); cost > 0 {
					links[name] = append(links[name], Link{Port: "to-" + other, Peer: other, PeerPort: "to-" + name, Cost: cost})
					links[other] = append(links[other], Link{Port: "to-" + name, Peer: name, PeerPort: "to-" + other, Cost: cost})
				}
			}
		}
		for name, list := range links {
			p.SetLinks(name, list)
		}
		p.Drain()
		from, to := rapid.SampledFrom(names).Draw(t, "from"), rapid.SampledFrom(names).Draw(t, "to")
		w, err := p.Way(from, to)
		block := p.routers[to].Block()
		for i, hop := range w.Hops[:max(len(w.Hops)-1, 0)] {
			routes := p.Snapshot(hop.Router).Routes
			at := slices.IndexFunc(routes, func(r Route) bool { return r.Prefix == block })
			if at < 0 || routes[at].Port != hop.Out {
				t.Fatalf("hop %d of %+v: %s routes %v by %+v", i, w, hop.Router, block, routes)
			}
		}
		known := slices.ContainsFunc(p.Snapshot(from).Routes, func(r Route) bool { return r.Prefix == block })
		if (err == nil) != (known || from == to) {
			t.Fatalf("%s to %s: %v, and the router has a route: %v", from, to, err, known)
		}
	})
}
