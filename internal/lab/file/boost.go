package file

import (
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/boost/options"
	"scaffold.dev/scaffold/internal/core/lane"

	"go.yaml.in/yaml/v3"

	"scaffold.dev/scaffold/internal/core/names"
)

// Boostd is the name of what an agent runs beside its host's daemon.
const Boostd = "boostd"

// Boost is which connections agents carry from the start of the lab.
type Boost struct {
	Line    int
	Sites   []*BoostSite
	Entries []*BoostEntry
}

// A BoostSite is hosts, and the agents that serve them.
type BoostSite struct {
	Line          int
	Name          string
	Hosts, Agents []string
}

// A BoostEntry is connections between the hosts of two sites.
type BoostEntry struct {
	Line             int
	Name             string
	Clients, Servers string // sites
	Port             int    // of the servers; 0: any
	Accept           string // its clients, as scaffold boost allow has it; "": once the server has answered
	Mode             string // how switches send it to agents, the same; "": at their ports
}

// IsHost reports whether nodes of the kind run a host's daemon.
func (k Kind) IsHost() bool { return k == Host || k == Agent }

// Site finds a site by name.
func (b *Boost) Site(name string) *BoostSite {
	if b == nil {
		return nil
	}
	for _, s := range b.Sites {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// A BoostPair is one entry as the controller has it: it takes one prefix for each side.
type BoostPair struct{ Name, Client, Server string }

// Pairs are an entry's pairs of hosts, each under a name of its own: the entry's, where there is one alone.
func (b *Boost) Pairs(e *BoostEntry) (all []BoostPair) {
	clients, servers := b.Site(e.Clients), b.Site(e.Servers)
	if clients == nil || servers == nil {
		return nil
	}
	for _, client := range clients.Hosts {
		for _, server := range servers.Hosts {
			name := e.Name
			if len(clients.Hosts)*len(servers.Hosts) > 1 {
				name = strings.Join([]string{e.Name, client, server}, "-")
			}
			all = append(all, BoostPair{name, client, server})
		}
	}
	return all
}

// SiteOf is the site that an agent serves; nil: none.
func (b *Boost) SiteOf(agent string) *BoostSite {
	if b == nil {
		return nil
	}
	for _, s := range b.Sites {
		if slices.Contains(s.Agents, agent) {
			return s
		}
	}
	return nil
}

// Carries reports whether there is an entry of a site.
func (b *Boost) Carries(s *BoostSite) bool {
	return slices.ContainsFunc(b.Entries, func(e *BoostEntry) bool { return e.Clients == s.Name || e.Servers == s.Name })
}

func (r *reader) boost(f *File, n *yaml.Node) {
	f.Boost = &Boost{Line: n.Line}
	r.object(n, "boost", fields{
		"sites": func(n *yaml.Node) {
			r.each(n, "sites", func(key, value *yaml.Node) { r.boostSite(f.Boost, key, value) })
		},
		"entries": func(n *yaml.Node) {
			r.each(n, "entries", func(key, value *yaml.Node) { r.boostEntry(f.Boost, key, value) })
		},
	})
}

func (r *reader) boostSite(b *Boost, key, value *yaml.Node) {
	s := &BoostSite{Line: key.Line, Name: key.Value}
	b.Sites = append(b.Sites, s)
	names := func(n *yaml.Node, what string, to *[]string) {
		r.list(n, what, func(n *yaml.Node) { *to = append(*to, r.text(n, what)) })
	}
	r.object(value, "site "+s.Name, fields{
		"hosts":  func(n *yaml.Node) { names(n, "hosts", &s.Hosts) },
		"agents": func(n *yaml.Node) { names(n, "agents", &s.Agents) },
	})
}

func (r *reader) boostEntry(b *Boost, key, value *yaml.Node) {
	e := &BoostEntry{Line: key.Line, Name: key.Value}
	b.Entries = append(b.Entries, e)
	r.object(value, "entry "+e.Name, fields{
		"clients": func(n *yaml.Node) { e.Clients = r.text(n, "clients") },
		"servers": func(n *yaml.Node) { e.Servers = r.text(n, "servers") },
		"port":    func(n *yaml.Node) { e.Port = r.integer(n, "port", 1, 65535) },
		"accept":  func(n *yaml.Node) { e.Accept = r.oneOf(n, "accept", lane.Accepts...) },
		"mode":    func(n *yaml.Node) { e.Mode = r.oneOf(n, "mode", lane.Modes...) },
	})
}

// settings are how an agent carries, in words that its own file has: they are looked at here, and read there.
func (r *reader) settings(n *yaml.Node) (all []Pair) {
	var o options.Options
	known := options.Fields(&r.Reader, &o)
	for key, read := range known {
		known[key] = func(n *yaml.Node) {
			all = append(all, Pair{key, n.Value})
			read(n)
		}
	}
	r.object(n, "settings of an agent", known)
	return all
}

// checkBoost finds what the controller would refuse, and agents by which no connection would come.
func (c *checker) checkBoost() {
	for _, n := range c.Of(Agent) {
		c.checkAgent(n)
	}
	b := c.Boost
	if b == nil {
		return
	}
	if c.Bare {
		c.r.errorf(b.Line, "boost in a network of plain IP: agents are told what to carry; expected a node with kind: controller, and routers that it drives")
		return
	}
	at := map[string]*BoostSite{} // by nodes
	for _, s := range b.Sites {
		if !nodeName.MatchString(s.Name) {
			c.r.errorf(s.Line, "site %q: expected a name of 1 to 32 of a-z, 0-9 and inner dashes", s.Name)
		}
		c.checkSite(s, at)
	}
	named := map[string]*BoostEntry{}
	for _, e := range b.Entries {
		c.checkEntry(e)
		c.checkPairs(e, named)
	}
}

// checkPairs: the controller has an entry for each pair of hosts, and would take one of a name that is there for the same one.
func (c *checker) checkPairs(e *BoostEntry, named map[string]*BoostEntry) {
	for _, p := range c.Boost.Pairs(e) {
		err := names.CheckMember(p.Name)
		switch other := named[p.Name]; {
		case p.Name == e.Name && err != nil: // checkEntry has said so
		case err != nil:
			c.r.errorf(e.Line, "entry %q: the controller has one for each pair of hosts, and that for %s and %s would be %q: %v; expected shorter names", e.Name, p.Client, p.Server, p.Name, err)
			return
		case other != nil && other != e:
			c.r.errorf(e.Line, "entry %q: the controller has one for each pair of hosts, and that for %s and %s would be %q, as one of %q (line %d); expected another name", e.Name, p.Client, p.Server, p.Name, other.Name, other.Line)
			return
		case other == e:
			c.r.errorf(e.Line, "entry %q: the controller has one for each pair of hosts, and two of them would be %q; expected other names of hosts", e.Name, p.Name)
			return
		}
		named[p.Name] = e
	}
}

// checkAgent: packets reach an agent because a switch sends them to its port.
func (c *checker) checkAgent(n *Node) {
	atSwitch := slices.ContainsFunc(c.linksBetween(n.Name, ""), func(l *Link) bool {
		far := c.Node(l.far(n.Name))
		return far != nil && far.Kind == Switch
	})
	if !atSwitch && !c.Bare {
		c.r.errorf(n.Line, "agent %q is at no switch: no connection would come by it; expected a link to a node of kind switch", n.Name)
	}
	if c.Bare {
		c.r.errorf(n.Line, "agent %q in a network of plain IP: agents are told what to carry; expected a node with kind: controller, and switches", n.Name)
	}
}

func (c *checker) checkSite(s *BoostSite, at map[string]*BoostSite) {
	if len(s.Hosts) == 0 || len(s.Agents) == 0 {
		c.r.errorf(s.Line, "site %q: expected hosts and agents, one of each at least", s.Name)
	}
	for _, name := range s.Hosts {
		c.checkAt(s, name, Host, at)
	}
	for _, name := range s.Agents {
		c.checkAt(s, name, Agent, at)
	}
}

func (c *checker) checkAt(s *BoostSite, name string, kind Kind, at map[string]*BoostSite) {
	n, other := c.Node(name), at[name]
	switch {
	case n == nil:
		c.r.errorf(s.Line, "site %q: unknown node %q; expected one of %s", s.Name, name, c.Names())
	case n.Kind != kind:
		c.r.errorf(s.Line, "site %q: %q is %s; expected %s", s.Name, name, n.Kind.WithArticle(), kind.WithArticle())
	case other != nil:
		c.r.errorf(s.Line, "site %q: %q is of site %q (line %d); expected each node at one site", s.Name, name, other.Name, other.Line)
	default:
		at[name] = s
	}
}

func (c *checker) checkEntry(e *BoostEntry) {
	if !nodeName.MatchString(e.Name) {
		c.r.errorf(e.Line, "entry %q: expected a name of 1 to 32 of a-z, 0-9 and inner dashes", e.Name)
	}
	for _, side := range [][2]string{{"clients", e.Clients}, {"servers", e.Servers}} {
		if c.Boost.Site(side[1]) == nil {
			c.r.errorf(e.Line, "entry %q: %s %q; expected the name of a site", e.Name, side[0], side[1])
			return
		}
	}
	if e.Clients == e.Servers {
		c.r.errorf(e.Line, "entry %q: clients and servers are both at %q; expected two sites", e.Name, e.Clients)
	}
	for _, o := range c.Boost.Entries {
		if o == e {
			break
		}
		if o.Clients == e.Clients && o.Servers == e.Servers && (o.Port == 0 || e.Port == 0 || o.Port == e.Port) {
			c.r.errorf(e.Line, "entry %q has connections in common with %q (line %d); expected other sites or another port", e.Name, o.Name, o.Line)
		}
	}
}
