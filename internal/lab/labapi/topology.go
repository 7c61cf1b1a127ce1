package labapi

import (
	"context"

	"google.golang.org/protobuf/types/known/structpb"

	"scaffold.dev/scaffold/internal/lab/plan"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// GetTopology is a lab as a graph, in the node-link form that networkx reads.
func (s calls) GetTopology(_ context.Context, q *labv1.LabName) (*labv1.Topology, error) {
	l, err := s.open(q.Lab)
	if err != nil {
		return nil, err
	}
	return topology(l.Plan()), nil
}

func topology(p *plan.Plan) *labv1.Topology {
	t := &labv1.Topology{Multigraph: true, Graph: &labv1.TopologyGraph{Name: p.File.Name, Title: p.File.Title}}
	for _, n := range p.Nodes {
		node := &labv1.TopologyNode{Id: n.Name, Kind: string(n.Kind), Service: n.Service}
		for _, program := range n.Programs {
			node.Programs = append(node.Programs, program.Name)
		}
		if x, y, known := p.File.Position(n.Name); known {
			node.Position = pair(x, y)
		}
		t.Nodes = append(t.Nodes, node)
	}
	seen := map[[2]string]int32{}
	for _, c := range p.Cable {
		t.Links = append(t.Links, topologyLink(c, seen))
	}
	return t
}

func pair(x, y float64) *structpb.ListValue {
	return &structpb.ListValue{Values: []*structpb.Value{structpb.NewNumberValue(x), structpb.NewNumberValue(y)}}
}

// topologyLink counts the links between two nodes in seen.
func topologyLink(c *plan.Link, seen map[[2]string]int32) *labv1.TopologyLink {
	ends := [2]string{min(c.Ends[0], c.Ends[1]), max(c.Ends[0], c.Ends[1])}
	l := &labv1.TopologyLink{
		Source: c.Ends[0], Target: c.Ends[1], Key: seen[ends],
		Interfaces: []string{c.Ports[0].Dev, c.Ports[1].Dev}, Emulated: c.Emulated != nil, Parameters: []string{"", ""},
	}
	seen[ends]++
	if c.Link.Tunnel != "" {
		l.Tunnel = &c.Link.Tunnel
	}
	if c.Rate != 0 {
		l.RateBitS = &c.Rate
	}
	if c.Emulated != nil {
		l.Parameters = []string{c.Emulated[0].String(), c.Emulated[1].String()}
	}
	return l
}
