package forward

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"scaffold.dev/scaffold/emu/fib"
)

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
	for p, h := range f.fixed {
		f.always = append(f.always, fib.Route{Prefix: p, Hop: h})
	}
	slices.SortFunc(f.always, compare)
	lists.Lock()
	defer lists.Unlock()
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

// SetRoutes puts routes in place of all that were set or added; no packet sees a part of them. Of several routes of one
// prefix the last counts. If one of them is wrong, all stays as it is. Routes of the router's own addresses and of the
// prefixes of its ports stay, and go first. It is fastest with routes that are sorted by address and length.
func (f *Forwarder) SetRoutes(routes []Route) error {
	lists.Lock()
	defer lists.Unlock()
	next := lists.next[:0]
	defer func() { lists.next = next }()
	for _, r := range routes {
		h, err := f.install(r)
		if err != nil {
			f.uninstall(next)
			return err
		}
		next = append(next, fib.Route{Prefix: r.Prefix.Masked(), Hop: h})
	}
	next = f.tidy(next)
	if err := f.change(next); err != nil {
		f.uninstall(next)
		return err
	}
	return nil
}

// lists are memory for what is put together once for each router, and would be garbage thousands of times over.
var lists struct {
	sync.Mutex
	next, all, old []fib.Route
}

// change replaces all routes by those that are installed already.
func (f *Forwarder) change(next []fib.Route) error {
	old := lists.old[:0]
	for p, h := range f.table.All() {
		if _, fixed := f.fixed[p]; !fixed {
			old = append(old, fib.Route{Prefix: p, Hop: h})
		}
	}
	lists.old = old
	if err := f.reload(next); err != nil {
		return err
	}
	f.uninstall(old)
	for _, h := range f.hidden {
		f.release(h)
	}
	clear(f.hidden)
	for _, r := range next {
		if _, fixed := f.fixed[r.Prefix]; fixed {
			f.hidden[r.Prefix] = r.Hop
		}
	}
	return nil
}

func compare(a, b fib.Route) int {
	return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), a.Prefix.Bits()-b.Prefix.Bits())
}

// tidy sorts routes, and lets go of all but the last of a prefix.
func (f *Forwarder) tidy(routes []fib.Route) []fib.Route {
	if !slices.IsSortedFunc(routes, compare) {
		slices.SortStableFunc(routes, compare)
	}
	kept := routes[:0]
	for i, r := range routes {
		if i+1 < len(routes) && routes[i+1].Prefix == r.Prefix {
			f.release(r.Hop)
		} else {
			kept = append(kept, r)
		}
	}
	return kept
}

func (f *Forwarder) uninstall(routes []fib.Route) {
	for _, r := range routes {
		f.release(r.Hop)
	}
}

// reload makes the table anew, of the fixed routes and others that are sorted.
func (f *Forwarder) reload(routes []fib.Route) error {
	all := lists.all[:0]
	fixed := f.always
	for _, r := range routes {
		for len(fixed) > 0 && compare(fixed[0], r) < 0 {
			all, fixed = append(all, fixed[0]), fixed[1:]
		}
		if len(fixed) == 0 || fixed[0].Prefix != r.Prefix {
			all = append(all, r)
		}
	}
	all = append(all, fixed...)
	lists.all = all
	if err := f.table.Load(all); err != nil {
		return err
	}
	f.classed(func(c *fib.Classes, number int) error { return c.Load(number, all) })
	return nil
}

// Add makes a route, or changes the one of the same prefix.
func (f *Forwarder) Add(r Route) error {
	h, err := f.install(r)
	if err != nil {
		return err
	}
	p := r.Prefix.Masked()
	if _, fixed := f.fixed[p]; fixed {
		f.release(f.hidden[p])
		f.hidden[p] = h
		return nil
	}
	old, _ := f.table.Get(p)
	if err := f.table.Set(p, h); err != nil {
		f.release(h)
		return err
	}
	f.classed(func(c *fib.Classes, number int) error { return c.Set(number, p, h) })
	f.release(old)
	return nil
}

// Delete takes the route of a prefix away, and reports whether it was there.
func (f *Forwarder) Delete(p netip.Prefix) bool {
	p = p.Masked()
	if _, fixed := f.fixed[p]; fixed {
		h, ok := f.hidden[p]
		delete(f.hidden, p)
		f.release(h)
		return ok
	}
	old, ok := f.table.Get(p)
	if !ok {
		return false
	}
	f.table.Delete(p)
	f.classed(func(c *fib.Classes, number int) error { c.Delete(number, p); return nil })
	f.release(old)
	return true
}

// install finds a place for a route's next hops.
func (f *Forwarder) install(r Route) (fib.Hop, error) {
	if err := r.validate(); err != nil {
		return 0, err
	}
	switch {
	case r.Kind == Blackhole:
		return fib.Blackhole, nil
	case r.Kind == Unreachable:
		return rejectHop, nil
	case len(r.Hops) == 1:
		return f.join(r.Prefix, r.Hops[0])
	}
	members := make([]fib.Hop, 0, len(r.Hops))
	for _, n := range r.Hops {
		h, err := f.join(r.Prefix, n)
		if err != nil {
			f.releaseAll(members)
			return 0, err
		}
		members = append(members, h)
	}
	return f.gather(members)
}

// join is the adjacency of a next hop.
func (f *Forwarder) join(p netip.Prefix, n NextHop) (fib.Hop, error) {
	if f.router != nil && n.Port >= len(f.ports) {
		return 0, fmt.Errorf("route to %v: port %d: the router has %d, numbered from 0", p, n.Port, len(f.ports))
	}
	h, fresh, err := f.place(n)
	if err != nil {
		return 0, fmt.Errorf("route to %v: %w", p, err)
	}
	if fresh && f.router != nil {
		f.all[h] = f.reach(n, uint16(h))
	}
	return h, nil
}

// Routes are those that were set or added, by prefix.
func (f *Forwarder) Routes() []Route {
	var all []Route
	for p, h := range f.table.All() {
		if _, fixed := f.fixed[p]; !fixed {
			all = append(all, f.route(p, h))
		}
	}
	for p, h := range f.hidden {
		all = append(all, f.route(p, h))
	}
	slices.SortFunc(all, func(a, b Route) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	return all
}

// route is the route that a hop was made from; the order of its next hops is lost.
func (f *Forwarder) route(p netip.Prefix, h fib.Hop) Route {
	r := Route{Prefix: p}
	switch {
	case h == fib.Blackhole:
		r.Kind = Blackhole
	case h == rejectHop:
		r.Kind = Unreachable
	case f.all[h].kind == toGroup:
		for _, m := range f.groups[f.all[h].more].members {
			r.Hops = append(r.Hops, f.targets[m].hop)
		}
	default:
		r.Hops = []NextHop{f.targets[h].hop}
	}
	return r
}
