package plan

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"net/netip"
)

// lastResort is added to the cost of a silent link: any path of live ones is better, none is worse.
const lastResort = 1 << 32

// An edge is the best link from one router to a neighbour.
type edge struct {
	to       string
	cost     uint64
	via      netip.Addr
	port     string
	peerPort string // "" where nobody said
}

// graph holds the usable edges out of and into each router.
type graph struct{ out, in map[string][]edge }

func (p *Plan) graph() graph {
	g := graph{out: make(map[string][]edge), in: make(map[string][]edge)}
	for name, r := range p.routers {
		for peer, e := range p.edges(r) {
			g.out[name] = append(g.out[name], e)
			back := e
			back.to = name
			g.in[peer] = append(g.in[peer], back)
		}
	}
	return g
}

// edges picks the best of parallel links to each neighbour, ties by port name.
func (p *Plan) edges(r *router) map[string]edge {
	best := make(map[string]edge)
	for _, l := range r.links {
		peer, ok := p.routers[l.Peer]
		if !ok || l.Peer == r.Name {
			continue
		}
		state := max(l.State, peer.sees(r.Name, l))
		if state == LinkDown {
			continue
		}
		e := edge{to: l.Peer, cost: cost(l.Cost, state), via: l.Via, port: l.Port, peerPort: l.PeerPort}
		if b, ok := best[l.Peer]; !ok || e.cost < b.cost || e.cost == b.cost && e.port < b.port {
			best[l.Peer] = e
		}
	}
	return best
}

// sees is what r says of the same link from the other end: the best it knows towards the peer, of
// the same pair of ports where both name them. A link of which it says nothing is none: one end's
// word is not enough, since what greets a router at a port may be anybody (docs/protocol.md §4.1).
func (r *router) sees(peer string, l Link) LinkState {
	state := LinkDown
	for _, m := range r.links {
		paired := m.PeerPort == "" || l.PeerPort == "" || m.Port == l.PeerPort && m.PeerPort == l.Port
		if m.Peer == peer && paired {
			state = min(state, m.State)
		}
	}
	return state
}

func cost(c uint32, s LinkState) uint64 {
	if s == LinkSilent {
		return uint64(max(c, 1)) + lastResort
	}
	return uint64(max(c, 1))
}

// distances is Dijkstra towards a set of goals: how far each router is from the nearest.
func (g graph) distances(goals []string) map[string]uint64 {
	dist := make(map[string]uint64)
	var q queue
	for _, goal := range goals {
		dist[goal] = 0
		q = append(q, item{goal, 0})
	}
	heap.Init(&q)
	for len(q) > 0 {
		here := heap.Pop(&q).(item)
		if here.dist > dist[here.name] {
			continue
		}
		for _, e := range g.in[here.name] {
			d := here.dist + e.cost
			if old, ok := dist[e.to]; !ok || d < old {
				dist[e.to] = d
				heap.Push(&q, item{e.to, d})
			}
		}
	}
	return dist
}

// next is the neighbour to use: on a shortest path, which means nearer at every hop and so without
// loops. Among equals a hash of (here, goal, neighbour) decides: it spreads the goals over the
// paths and depends on nothing but names.
func (g graph) next(here string, goal string, dist map[string]uint64) (edge, bool) {
	best, found := edge{}, false
	for _, e := range g.out[here] {
		d, ok := dist[e.to]
		if !ok || d+e.cost != dist[here] {
			continue
		}
		if !found || prefer(here, goal, e, best) {
			best, found = e, true
		}
	}
	return best, found
}

func prefer(here, goal string, a, b edge) bool {
	if c := cmp.Compare(hash(here, goal, a.to), hash(here, goal, b.to)); c != 0 {
		return c < 0
	}
	return a.to < b.to
}

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// ways computes the routes between routers: to each block, and to the nearest service router for
// what is not resolved.
func (p *Plan) ways() map[string][]Route {
	g, all := p.graph(), make(map[string][]Route, len(p.routers))
	var resolvers []string
	for name, r := range p.routers {
		p.toward(all, g, []string{name}, name, r.Block())
		if r.Service {
			resolvers = append(resolvers, name)
		}
	}
	p.toward(all, g, resolvers, "service", p.space.Services)
	p.toward(all, g, resolvers, "service", p.space.Locator(0).Prefix())
	return all
}

func (p *Plan) toward(all map[string][]Route, g graph, goals []string, label string, to netip.Prefix) {
	dist := g.distances(goals)
	for name := range p.routers {
		if d, ok := dist[name]; !ok || d == 0 {
			continue
		}
		if e, ok := g.next(name, label, dist); ok {
			all[name] = append(all[name], Route{Prefix: to, Via: e.via, Port: e.port})
		}
	}
}

// own are the routes of a router to its own hosts.
func (p *Plan) own(r *router) []Route {
	routes := make([]Route, 0, len(r.hosts))
	for l := range r.hosts {
		at := p.places[l]
		routes = append(routes, Route{Prefix: l.Prefix(), Via: at.LinkLocal, Port: at.Port, MAC: at.MAC})
	}
	return routes
}

type item struct {
	name string
	dist uint64
}

// queue is a heap of routers by distance.
type queue []item

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].dist < q[j].dist }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(item)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
