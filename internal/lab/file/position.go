package file

import (
	"math"

	"scaffold.dev/scaffold/internal/lab/topo"
)

// keepPositions notes where the nodes of a graph are.
func (f *File) keepPositions(g *topo.Graph) {
	f.at = map[string]topo.Position{}
	for _, n := range g.Nodes {
		if n.At != nil {
			f.at[n.Name] = *n.At
		}
	}
}

// Position is where a map draws a node, x to the east and y to the north: km in a plane, or places on the globe
// in Mercator's projection, in degrees of the equator. It is not known of nodes that the file itself names.
func (f *File) Position(node string) (x, y float64, known bool) {
	p, known := f.at[node]
	if !known || p.Flat {
		return p.X, p.Y, known
	}
	const most = 85 // degrees: the projection has no poles
	lat := max(-most, min(most, p.Lat)) * math.Pi / 180
	return p.Lon, math.Log(math.Tan(math.Pi/4+lat/2)) * 180 / math.Pi, true
}
