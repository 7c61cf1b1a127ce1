package file

import (
	"math"
	"testing"

	"scaffold.dev/scaffold/internal/lab/topo"
)

func TestPositionsGoToTheEastAndTheNorth(t *testing.T) {
	f := &File{}
	if _, _, known := f.Position("x"); known {
		t.Error("a node without a map has a position")
	}
	f.keepPositions(&topo.Graph{Nodes: []topo.Node{
		{Name: "flat", At: &topo.Position{Flat: true, X: 3, Y: 4}},
		{Name: "equator", At: &topo.Position{Lat: 0, Lon: 10}},
		{Name: "north", At: &topo.Position{Lat: 60, Lon: -20}},
		{Name: "pole", At: &topo.Position{Lat: 90}},
		{Name: "nowhere"},
	}})
	for name, want := range map[string][2]float64{"flat": {3, 4}, "equator": {10, 0}, "north": {-20, 75.456}} {
		if x, y, known := f.Position(name); !known || math.Abs(x-want[0]) > 1e-3 || math.Abs(y-want[1]) > 1e-3 {
			t.Errorf("%s: %v, %v, %v; want %v", name, x, y, known, want)
		}
	}
	if _, y, _ := f.Position("pole"); math.IsInf(y, 0) || y < 100 {
		t.Errorf("a pole is at %v", y)
	}
	if _, _, known := f.Position("nowhere"); known {
		t.Error("it made a position up")
	}
}
