package plan

import (
	"errors"
	"fmt"
)

// A Way is how packets come from one host or router to another by the rules that the plan makes.
type Way struct {
	Hops []Hop
	Cost uint64 // of the links between the routers
}

// A Hop is a router that a way goes through, and the ports by which; "" where the way begins or ends at the
// router itself, or where nobody said what the port is called.
type Hop struct {
	Router  string
	In, Out string
}

// Errors of Way.
var (
	ErrNoEnd = errors.New("no such host or router")
	ErrNoWay = errors.New("no way leads there")
)

// Way finds the way from one host or router to another, each by name; a router comes before a host of its
// name. A host's is that of its preferred place.
func (p *Plan) Way(from, to string) (Way, error) {
	first, in, err := p.end(from)
	if err != nil {
		return Way{}, err
	}
	goal, out, err := p.end(to)
	if err != nil {
		return Way{}, err
	}
	g := p.graph()
	dist := g.distances([]string{goal})
	w := Way{Cost: dist[first]}
	for here := first; here != goal; {
		e, ok := g.next(here, goal, dist)
		if !ok {
			return Way{}, fmt.Errorf("from %s to %s: %w: %s knows no neighbour that is nearer to %s", from, to, ErrNoWay, here, goal)
		}
		w.Hops = append(w.Hops, Hop{here, in, e.port})
		here, in = e.to, e.peerPort
	}
	w.Hops = append(w.Hops, Hop{goal, in, out})
	return w, nil
}

// end is the router at one end of a way, and its port where that is a host's.
func (p *Plan) end(name string) (at, port string, err error) {
	if _, ok := p.routers[name]; ok {
		return name, "", nil
	}
	h, ok := p.hosts[name]
	if !ok {
		return "", "", fmt.Errorf("%.80q: %w", name, ErrNoEnd)
	}
	place := h.place()
	if _, ok := p.routers[place.Router]; !ok {
		return "", "", fmt.Errorf("%s: %w: its first-hop router %s is not in the network", name, ErrNoWay, place.Router)
	}
	return place.Router, place.Port, nil
}
