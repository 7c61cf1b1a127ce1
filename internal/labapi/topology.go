package labapi

import (
	"net/http"

	"scaffold.dev/scaffold/internal/lab"
)

// A Topology is a lab as a graph, in the node-link form that networkx reads.
type Topology struct {
	Directed   bool           `json:"directed"`   // false
	Multigraph bool           `json:"multigraph"` // true
	Graph      TopologyGraph  `json:"graph"`
	Nodes      []TopologyNode `json:"nodes"`
	Links      []TopologyLink `json:"links"`
}

// TopologyGraph is what belongs to the whole.
type TopologyGraph struct {
	Name  string `json:"name"`  // of the lab
	Title string `json:"title"` // "" where the file has none
}

// A TopologyNode is a node.
type TopologyNode struct {
	ID       string   `json:"id"`       // its name
	Kind     string   `json:"kind"`     // as in the lab file
	Service  bool     `json:"service"`  // a router or switch that resolves names
	Programs []string `json:"programs"` // their names

	Position *[2]float64 `json:"position,omitempty"` // on a map, x to the east and y to the north; its scale is the map's own
}

// A TopologyLink is a link, in the order of the file.
type TopologyLink struct {
	Source     string    `json:"source"`
	Target     string    `json:"target"`
	Key        int       `json:"key"`        // 0 for the first link between these two, then 1
	Interfaces [2]string `json:"interfaces"` // at source and target
	Emulated   bool      `json:"emulated"`
	Tunnel     string    `json:"tunnel,omitempty"`     // "vxlan"
	Rate       uint64    `json:"rate_bit_s,omitempty"` // of a veth pair
	Parameters [2]string `json:"parameters"`           // of an emulated one as the file has them, there and back
}

func (s *Server) topology(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	return topology(l.Plan()), nil
}

func topology(p *lab.Plan) *Topology {
	t := &Topology{Multigraph: true, Graph: TopologyGraph{p.File.Name, p.File.Title}, Nodes: []TopologyNode{}, Links: []TopologyLink{}}
	for _, n := range p.Nodes {
		node := TopologyNode{ID: n.Name, Kind: string(n.Kind), Service: n.Service, Programs: []string{}}
		for _, program := range n.Programs {
			node.Programs = append(node.Programs, program.Name)
		}
		if x, y, known := p.File.Position(n.Name); known {
			node.Position = &[2]float64{x, y}
		}
		t.Nodes = append(t.Nodes, node)
	}
	seen := map[[2]string]int{}
	for _, c := range p.Cable {
		t.Links = append(t.Links, topologyLink(c, seen))
	}
	return t
}

// topologyLink counts the links between two nodes in seen.
func topologyLink(c *lab.PlanLink, seen map[[2]string]int) TopologyLink {
	pair := [2]string{min(c.Ends[0], c.Ends[1]), max(c.Ends[0], c.Ends[1])}
	l := TopologyLink{
		Source: c.Ends[0], Target: c.Ends[1], Key: seen[pair],
		Interfaces: [2]string{c.Ports[0].Dev, c.Ports[1].Dev},
		Emulated:   c.Emulated != nil, Tunnel: c.Link.Tunnel, Rate: c.Rate,
	}
	seen[pair]++
	if c.Emulated != nil {
		l.Parameters = [2]string{c.Emulated[0].String(), c.Emulated[1].String()}
	}
	return l
}
