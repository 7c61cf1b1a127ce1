package lane

import (
	"fmt"
	"net/netip"
)

// mostAlike is how many entries may have the same prefixes and differ by port or time: a program in the kernel has room for
// 64 lanes of the same prefixes (internal/bpf/divert), and each entry may be 8.
const mostAlike = 8

// Check says what is wrong with sites and entries, the first thing that it finds: what, where, and what to do.
func Check(sites []Site, entries []Entry) error {
	if err := checkSites(sites); err != nil {
		return err
	}
	seen, alike := map[string]bool{}, map[[2]netip.Prefix]int{}
	for i := range entries {
		e := &entries[i]
		if seen[e.Name] {
			return fmt.Errorf("entry %q is there twice: give each its own name", e.Name)
		}
		seen[e.Name] = true
		if err := e.check(sites); err != nil {
			return fmt.Errorf("entry %q: %w", e.Name, err)
		}
		if ways := [2]netip.Prefix{e.Client, e.Server}; alike[ways] == mostAlike {
			return fmt.Errorf("entry %q: %d entries have the clients %v and the servers %v, as many as may have the same prefixes: give one port 0, for all, or divide a prefix", e.Name, mostAlike, e.Client, e.Server)
		} else {
			alike[ways]++
		}
		for j := range i {
			if e.overlaps(&entries[j]) {
				return fmt.Errorf("entries %q and %q have connections in common: make their prefixes, ports or times disjoint", entries[j].Name, e.Name)
			}
			if s := turned(sites, e, &entries[j]); s != nil {
				return fmt.Errorf("entries %q and %q lead both ways between the same hosts, and the switches of site %q, which has %d agents, cannot tell whose a packet is: give each a port, or the site one agent", entries[j].Name, e.Name, s.Name, s.Agents)
			}
		}
	}
	return nil
}

func checkSites(sites []Site) error {
	type owned struct {
		site string
		netip.Prefix
	}
	var all []owned
	names := map[string]bool{}
	for _, s := range sites {
		if names[s.Name] {
			return fmt.Errorf("site %q is there twice: give it all its prefixes at once", s.Name)
		}
		names[s.Name] = true
		for _, p := range s.Prefixes {
			if !p.IsValid() || p.Masked() != p {
				return fmt.Errorf("site %q: %v is no prefix: its bits behind the length are to be 0", s.Name, p)
			}
			for _, o := range all {
				if o.Overlaps(p) {
					return fmt.Errorf("sites %q and %q both have addresses of %v: each address is of one site", o.site, s.Name, p)
				}
			}
			all = append(all, owned{s.Name, p})
		}
	}
	return nil
}

func (e *Entry) check(sites []Site) error {
	switch {
	case e.Name == "":
		return fmt.Errorf("it has no name")
	case !e.Client.IsValid() || !e.Server.IsValid():
		return fmt.Errorf("it lacks the clients' or the servers' prefix")
	case e.Client.Masked() != e.Client || e.Server.Masked() != e.Server:
		return fmt.Errorf("client %v, server %v: bits behind a prefix's length are to be 0", e.Client, e.Server)
	case e.Client.Addr().Is4() != e.Server.Addr().Is4():
		return fmt.Errorf("client %v and server %v are of two families of addresses: no connection can be between them", e.Client, e.Server)
	case !e.From.IsZero() && !e.Until.IsZero() && !e.From.Before(e.Until):
		return fmt.Errorf("it ends at %v, before it begins at %v", e.Until, e.From)
	}
	near, far := siteOf(sites, e.Client), siteOf(sites, e.Server)
	switch {
	case near == nil:
		return fmt.Errorf("no site has the clients' prefix %v: add it to one", e.Client)
	case far == nil:
		return fmt.Errorf("no site has the servers' prefix %v: add it to one", e.Server)
	case near == far:
		return fmt.Errorf("clients %v and servers %v are both at site %q: there is no path between two agents to be boosted", e.Client, e.Server, near.Name)
	}
	return nil
}

// siteOf is the site that has all of a prefix.
func siteOf(sites []Site, p netip.Prefix) *Site {
	for i := range sites {
		for _, q := range sites[i].Prefixes {
			if q.Bits() <= p.Bits() && q.Contains(p.Addr()) {
				return &sites[i]
			}
		}
	}
	return nil
}

// overlaps reports whether a connection may be of both entries at some time.
func (e *Entry) overlaps(o *Entry) bool {
	ports := e.Port == 0 || o.Port == 0 || e.Port == o.Port
	times := (o.Until.IsZero() || e.From.Before(o.Until)) && (e.Until.IsZero() || o.From.Before(e.Until))
	return ports && times && e.Client.Overlaps(o.Client) && e.Server.Overlaps(o.Server)
}

// turned is a site whose switches cannot tell packets of two entries apart: clients of the one are servers of the other, by
// any port, and several agents may be whom a packet is for.
func turned(sites []Site, e, o *Entry) *Site {
	back := Entry{Client: o.Server, Server: o.Client, From: o.From, Until: o.Until}
	if e.Port != 0 && o.Port != 0 || !e.overlaps(&back) {
		return nil
	}
	for _, p := range []netip.Prefix{e.Client, e.Server} {
		if s := siteOf(sites, p); s.Switched && s.Agents > 1 {
			return s
		}
	}
	return nil
}
