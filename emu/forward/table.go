package forward

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/emu/fib"
)

// installed is a route and its place.
type installed struct {
	Route
	hop fib.Hop
}

// fix makes the routes of the router's own addresses, and of the prefixes of its ports.
func (f *Forwarder) fix() error {
	for _, a := range f.config.Addresses {
		f.owns(a)
	}
	for i, p := range f.config.Ports {
		for _, a := range p.Addresses {
			if err := f.fixPort(i, a); err != nil {
				return err
			}
		}
	}
	return f.reload(nil)
}

func (f *Forwarder) owns(a netip.Addr) {
	f.own[a] = true
	f.fixed[netip.PrefixFrom(a, a.BitLen())] = fib.Local
}

func (f *Forwarder) fixPort(i int, a netip.Prefix) error {
	f.owns(a.Addr())
	if a.IsSingleIP() {
		return nil
	}
	prefix := a.Masked()
	if _, twice := f.fixed[prefix]; twice {
		return fmt.Errorf("port %d: prefix %v is that of another port too; expected it beyond one", i, prefix)
	}
	h, _, err := f.place(NextHop{Port: i})
	if err != nil {
		return err
	}
	f.fixed[prefix] = h
	if prefix.Addr().Is4() && prefix.Bits() < 31 {
		// Nobody has the first and the last address; the last means all hosts there, who get nothing from afar (RFC 2644).
		for _, b := range []netip.Addr{prefix.Addr(), last(prefix)} {
			if one := netip.PrefixFrom(b, 32); !f.own[b] {
				f.fixed[one] = fib.Blackhole
			}
		}
	}
	return nil
}

// last is the last address of an IPv4 prefix.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

// SetRoutes puts routes in place of all that were set or added; no packet sees a part of them. If one of them is wrong,
// all stays as it is. Routes of the router's own addresses and of the prefixes of its ports stay, and go first.
func (f *Forwarder) SetRoutes(routes []Route) error {
	next := make(map[netip.Prefix]installed, len(routes))
	for _, r := range routes {
		one, err := f.install(r)
		if err != nil {
			f.uninstall(next)
			return err
		}
		if old, twice := next[one.Prefix]; twice {
			f.release(old.hop)
		}
		next[one.Prefix] = one
	}
	if err := f.reload(next); err != nil {
		f.uninstall(next)
		return err
	}
	f.uninstall(f.routes)
	f.routes = next
	return nil
}

func (f *Forwarder) uninstall(routes map[netip.Prefix]installed) {
	for _, r := range routes {
		f.release(r.hop)
	}
}

// reload makes the table anew.
func (f *Forwarder) reload(routes map[netip.Prefix]installed) error {
	all := make([]fib.Route, 0, len(routes)+len(f.fixed))
	for p, r := range routes {
		if _, fixed := f.fixed[p]; !fixed {
			all = append(all, fib.Route{Prefix: p, Hop: r.hop})
		}
	}
	for p, h := range f.fixed {
		all = append(all, fib.Route{Prefix: p, Hop: h})
	}
	if err := f.table.Load(all); err != nil {
		return err
	}
	f.classed(func(c *fib.Classes, number int) error { return c.Load(number, all) })
	return nil
}

// Add makes a route, or changes the one of the same prefix.
func (f *Forwarder) Add(r Route) error {
	one, err := f.install(r)
	if err != nil {
		return err
	}
	if _, fixed := f.fixed[one.Prefix]; !fixed {
		if err := f.table.Set(one.Prefix, one.hop); err != nil {
			f.release(one.hop)
			return err
		}
		f.classed(func(c *fib.Classes, number int) error { return c.Set(number, one.Prefix, one.hop) })
	}
	if old, ok := f.routes[one.Prefix]; ok {
		f.release(old.hop)
	}
	f.routes[one.Prefix] = one
	return nil
}

// Delete takes the route of a prefix away, and reports whether it was there.
func (f *Forwarder) Delete(p netip.Prefix) bool {
	p = p.Masked()
	old, ok := f.routes[p]
	if !ok {
		return false
	}
	if _, fixed := f.fixed[p]; !fixed {
		f.table.Delete(p)
		f.classed(func(c *fib.Classes, number int) error { c.Delete(number, p); return nil })
	}
	delete(f.routes, p)
	f.release(old.hop)
	return true
}

// install finds a place for a route's next hops.
func (f *Forwarder) install(r Route) (installed, error) {
	if err := r.validate(); err != nil {
		return installed{}, err
	}
	r.Prefix = r.Prefix.Masked()
	switch r.Kind {
	case Blackhole:
		return installed{r, fib.Blackhole}, nil
	case Unreachable:
		return installed{r, rejectHop}, nil
	}
	members := make([]fib.Hop, 0, len(r.Hops))
	for _, n := range r.Hops {
		h, err := f.join(n)
		if err != nil {
			f.releaseAll(members)
			return installed{}, fmt.Errorf("route to %v: %w", r.Prefix, err)
		}
		members = append(members, h)
	}
	h, err := f.gather(members)
	return installed{r, h}, err
}

// join is the adjacency of a next hop.
func (f *Forwarder) join(n NextHop) (fib.Hop, error) {
	if f.router != nil && n.Port >= len(f.ports) {
		return 0, fmt.Errorf("port %d: the router has %d, numbered from 0", n.Port, len(f.ports))
	}
	h, fresh, err := f.place(n)
	if fresh && f.router != nil {
		f.all[h] = f.reach(n, uint16(h))
	}
	return h, err
}

// Routes are those that were set or added, IPv6 last, by prefix.
func (f *Forwarder) Routes() []Route {
	all := make([]Route, 0, len(f.routes))
	for _, r := range f.routes {
		all = append(all, r.Route)
	}
	slices.SortFunc(all, func(a, b Route) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	return all
}
