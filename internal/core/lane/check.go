package lane

import (
	"errors"
	"fmt"
	"net/netip"
)

// mostAlike is how many entries may have the same prefixes and differ by port or time: a program in the kernel has room for
// 64 lanes of the same prefixes (internal/bpf/divert), and each entry may be 8.
const mostAlike = 8

// A Problem is what is wrong with one site or entry, and what to do.
type Problem struct {
	Site, Entry string // whose it is: one of both
	Other       string // site or entry that it does not go together with, where there is one
	Field       string // "prefixes", "client", "server", "port", "until", "mode"; empty: the whole
	Text        string
}

// Check says what is wrong with sites and entries, the first thing that it finds: what, where, and what to do.
func Check(sites []Site, entries []Entry) error {
	if all := Problems(sites, entries); len(all) > 0 {
		return errors.New(all[0].Text)
	}
	return nil
}

// Problems are all that is wrong with sites and entries, one of each at most.
func Problems(sites []Site, entries []Entry) (all []Problem) {
	all = checkSites(sites)
	seen, alike := map[string]bool{}, map[[2]netip.Prefix]int{}
	for i := range entries {
		e := &entries[i]
		if field, other, err := e.among(sites, entries[:i], seen, alike); err != nil {
			all = append(all, Problem{Entry: e.Name, Other: other, Field: field, Text: err.Error()})
		}
		seen[e.Name] = true
		alike[[2]netip.Prefix{e.Client, e.Server}]++
	}
	return all
}

// among says what is wrong with an entry, by itself and beside those before it, of which other is one.
func (e *Entry) among(sites []Site, before []Entry, seen map[string]bool, alike map[[2]netip.Prefix]int) (field, other string, err error) {
	if seen[e.Name] {
		return "", "", fmt.Errorf("entry %q is there twice: give each its own name", e.Name)
	}
	if field, err := e.check(sites); err != nil {
		return field, "", fmt.Errorf("entry %q: %w", e.Name, err)
	}
	if alike[[2]netip.Prefix{e.Client, e.Server}] >= mostAlike {
		return "", "", fmt.Errorf("entry %q: %d entries have the clients %v and the servers %v, as many as may have the same prefixes: give one port 0, for all, or divide a prefix", e.Name, mostAlike, e.Client, e.Server)
	}
	for j := range before {
		o := &before[j]
		if e.overlaps(o) {
			return "", o.Name, fmt.Errorf("entries %q and %q have connections in common: make their prefixes, ports or times disjoint", o.Name, e.Name)
		}
		if s := turned(sites, e, o); s != nil {
			return "port", o.Name, fmt.Errorf("entries %q and %q lead both ways between the same hosts, and the switches of site %q, which has %d agents, cannot tell whose a packet is: give each a port, or the site one agent", o.Name, e.Name, s.Name, s.Agents)
		}
	}
	return "", "", nil
}

func checkSites(sites []Site) (all []Problem) {
	type owned struct {
		site string
		netip.Prefix
	}
	var taken []owned
	names := map[string]bool{}
	for _, s := range sites {
		wrong := func(field, other, format string, args ...any) {
			if len(all) == 0 || all[len(all)-1].Site != s.Name {
				all = append(all, Problem{Site: s.Name, Other: other, Field: field, Text: fmt.Sprintf(format, args...)})
			}
		}
		if names[s.Name] {
			wrong("", "", "site %q is there twice: give it all its prefixes at once", s.Name)
			continue
		}
		names[s.Name] = true
		for _, p := range s.Prefixes {
			if !p.IsValid() || p.Masked() != p {
				wrong("prefixes", "", "site %q: %v is no prefix: its bits behind the length are to be 0", s.Name, p)
				continue
			}
			for _, o := range taken {
				if o.Overlaps(p) {
					wrong("prefixes", o.site, "sites %q and %q both have addresses of %v: each address is of one site", o.site, s.Name, p)
				}
			}
			taken = append(taken, owned{s.Name, p})
		}
	}
	return all
}

// check says what is wrong with an entry by itself, and in which field.
func (e *Entry) check(sites []Site) (field string, err error) {
	switch {
	case e.Name == "":
		return "", fmt.Errorf("it has no name")
	case !e.Client.IsValid() || !e.Server.IsValid():
		return "", fmt.Errorf("it lacks the clients' or the servers' prefix")
	case e.Client.Masked() != e.Client || e.Server.Masked() != e.Server:
		return "", fmt.Errorf("client %v, server %v: bits behind a prefix's length are to be 0", e.Client, e.Server)
	case e.Client.Addr().Is4() != e.Server.Addr().Is4():
		return "server", fmt.Errorf("client %v and server %v are of two families of addresses: no connection can be between them", e.Client, e.Server)
	case !e.From.IsZero() && !e.Until.IsZero() && !e.From.Before(e.Until):
		return "until", fmt.Errorf("it ends at %v, before it begins at %v", e.Until, e.From)
	}
	near, far := siteOf(sites, e.Client), siteOf(sites, e.Server)
	switch {
	case near == nil:
		return "client", fmt.Errorf("no site has the clients' prefix %v: add it to one", e.Client)
	case far == nil:
		return "server", fmt.Errorf("no site has the servers' prefix %v: add it to one", e.Server)
	case near == far:
		return "server", fmt.Errorf("clients %v and servers %v are both at site %q: there is no path between two agents to be boosted", e.Client, e.Server, near.Name)
	}
	for _, s := range []*Site{near, far} {
		if e.Rewrite && !s.Switched {
			return "mode", fmt.Errorf("site %q has no switches that could rewrite connections: give it its switches, or the entry the mode %q", s.Name, Steered)
		}
	}
	return "", nil
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
	if e.Rewrite || o.Rewrite || e.Port != 0 && o.Port != 0 || !e.overlaps(&back) { // what is rewritten is told by its whole connection
		return nil
	}
	for _, p := range []netip.Prefix{e.Client, e.Server} {
		if s := siteOf(sites, p); s.Switched && s.Agents > 1 {
			return s
		}
	}
	return nil
}
