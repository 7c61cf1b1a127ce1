package engine

import (
	"net/netip"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// configOf is what the engine has to make; nil if there is nothing.
func configOf(p *plan.Plan, d state.Dir) *emud.Config {
	cfg := &emud.Config{Name: p.File.Name, Routing: routing(p)}
	for _, n := range p.Nodes {
		if n.Kind.InEngine() {
			cfg.Routers = append(cfg.Routers, routerOf(p, d, n))
		}
	}
	for _, c := range p.Cable {
		if c.Emulated == nil {
			continue
		}
		link := emud.Link{Params: *c.Emulated}
		for i := range c.Nodes {
			link.Ends[i] = endOf(c, i)
		}
		cfg.Links = append(cfg.Links, link)
	}
	if cfg.Links == nil && cfg.Routers == nil {
		return nil
	}
	return cfg
}

// endOf is one end of a link of the engine: a router's port, an interface, or both.
func endOf(c *plan.Link, i int) emud.End {
	n, port := c.Nodes[i], c.Ports[i]
	end := emud.End{Node: n.Name, Router: n.Kind.InEngine(), MTU: c.MTU, Addrs: port.Addrs}
	switch n.Kind {
	case file.Emulated:
	case file.Outside:
		end.Addrs = nil
		end.Edge = &emu.End{Dev: n.Interface, Taken: true}
	default:
		end.Edge = &emu.End{Netns: plan.NetnsPath(n.Netns), Dev: port.Dev, MTU: c.MTU}
	}
	return end
}

func routerOf(p *plan.Plan, d state.Dir, n *plan.Node) emud.Router {
	r := emud.Router{
		Name: n.Name, Program: n.Runs, FIB: n.FIB, Core: n.Core, Own: []netip.Addr{n.Own, n.Own4}, LinkLocal: n.LinkLocal,
		Parameters: map[string]string{},
	}
	if r.FIB == "" {
		r.FIB = p.File.Network.FIB
	}
	for _, parameter := range n.Parameters {
		r.Parameters[parameter.Key] = parameter.Value
	}
	if n.RunsScaffold() {
		addScaffold(p, d, n, r.Parameters)
	}
	for _, s := range n.Static {
		r.Static = append(r.Static, emud.Static{To: s.To, Port: n.Towards(s.Via)})
	}
	if n.Kind == file.FRR {
		r.Program, r.Feed = file.ForwardProgram, &emud.Feed{Kind: n.Feed, Netns: plan.NetnsPath(n.Netns)}
		for _, port := range n.Ports {
			r.Feed.Ports = append(r.Feed.Ports, port.Dev)
		}
	}
	return r
}

// routing is the network as computed routes see it.
func routing(p *plan.Plan) emud.Routing {
	net := p.File.Network
	r := emud.Routing{Computed: p.ComputesRoutes(), ECMP: net.ECMP, Convergence: net.Convergence}
	if !r.Computed {
		return r
	}
	at := map[*plan.Node]int{}
	for _, n := range p.Nodes {
		if n.TakesPart() {
			at[n] = len(r.Nodes)
			r.Nodes = append(r.Nodes, emud.Place{Name: n.Name, Announce: p.Announced(n)})
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
