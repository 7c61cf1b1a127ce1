package lab

import (
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/emud"
)

// engineConfig is what the engine has to make; nil if there is nothing.
func (l *Lab) engineConfig() *emud.Config {
	cfg := &emud.Config{Name: l.File.Name, Routing: l.plan.routing()}
	for _, n := range l.plan.Nodes {
		if n.Kind.engine() {
			cfg.Routers = append(cfg.Routers, l.engineRouter(n))
		}
	}
	for _, c := range l.plan.Cable {
		if c.Emulated == nil {
			continue
		}
		link := emud.Link{Params: *c.Emulated}
		for i := range c.Nodes {
			link.Ends[i] = c.engineEnd(i)
		}
		cfg.Links = append(cfg.Links, link)
	}
	if cfg.Links == nil && cfg.Routers == nil {
		return nil
	}
	return cfg
}

// engineEnd is one end of a link of the engine: a router's port, an interface, or both.
func (c *PlanLink) engineEnd(i int) emud.End {
	n, port := c.Nodes[i], c.Ports[i]
	end := emud.End{Node: n.Name, Router: n.Kind.engine(), MTU: c.MTU, Addrs: port.Addrs}
	switch n.Kind {
	case Emulated:
	case Outside:
		end.Addrs = nil
		end.Edge = &emu.End{Dev: n.Interface, Taken: true}
	default:
		end.Edge = &emu.End{Netns: netnsPath(n.Netns), Dev: port.Dev, MTU: c.MTU}
	}
	return end
}

func (l *Lab) engineRouter(n *PlanNode) emud.Router {
	r := emud.Router{
		Name: n.Name, Program: n.Runs, FIB: n.FIB, Core: n.Core, Own: []netip.Addr{n.Own, n.Own4}, LinkLocal: n.LinkLocal,
		Parameters: map[string]string{},
	}
	if r.FIB == "" {
		r.FIB = l.File.Network.FIB
	}
	for _, p := range n.Parameters {
		r.Parameters[p.Key] = p.Value
	}
	if n.scaffold() {
		l.addScaffold(n, r.Parameters)
	}
	for _, s := range n.Static {
		r.Static = append(r.Static, emud.Static{To: s.To, Port: n.towards(s.Via)})
	}
	if n.Kind == FRR {
		r.Program, r.Feed = ForwardProgram, &emud.Feed{Kind: n.Feed, Netns: netnsPath(n.Netns)}
		for _, p := range n.Ports {
			r.Feed.Ports = append(r.Feed.Ports, p.Dev)
		}
	}
	return r
}

// towards is the number of the port to a neighbour, nil for none.
func (n *PlanNode) towards(far string) *int {
	i := slices.IndexFunc(n.Ports, func(p *Port) bool { return p.Far.Name == far })
	if i < 0 {
		return nil
	}
	return &i
}

// routing is the network as computed routes see it.
func (p *Plan) routing() emud.Routing {
	net := p.File.Network
	r := emud.Routing{Computed: net.Routes == ComputedRoutes, ECMP: net.ECMP, Convergence: net.Convergence}
	if slices.ContainsFunc(p.Nodes, func(n *PlanNode) bool { return n.Kind == FRR }) {
		r.Computed = false // its daemons compute them
	}
	if !r.Computed {
		return r
	}
	at := map[*PlanNode]int{}
	for _, n := range p.Nodes {
		if n.Kind.ip() || n.routes() {
			at[n] = len(r.Nodes)
			r.Nodes = append(r.Nodes, emud.Place{Name: n.Name, Announce: p.announced(n)})
		}
	}
	link := 0
	for _, c := range p.Cable {
		number := -1
		if c.Emulated != nil {
			number = link
			link++
		}
		a, inside := at[c.Nodes[0]]
		b, both := at[c.Nodes[1]]
		if inside && both && c.Tunnel == nil {
			r.Edges = append(r.Edges, emud.Hop{Ends: [2]int{a, b}, Cost: c.Cost, Link: number})
		}
	}
	return r
}

// announced are the destinations at a router: those of plain IP, or of Scaffold.
func (p *Plan) announced(n *PlanNode) []netip.Prefix {
	if !n.routes() {
		return n.owns()
	}
	all := append(n.owns(), p.Prefix(n))
	if n.Service {
		all = append(all, p.File.Network.Space.Services)
	}
	return all
}
