package topo

import (
	"os"
	"testing"
)

// The map of Europe that ships says that its links are those of a Gabriel graph.
func TestTheLinksOfEuropeAreThoseOfItsGabrielGraph(t *testing.T) {
	text, err := os.ReadFile("../../../examples/europe.graphml")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := Read("europe.graphml", text)
	if err != nil {
		t.Fatal(err)
	}
	computed := &Graph{Nodes: drawn.Nodes}
	if err := computed.Gabriel(); err != nil {
		t.Fatal(err)
	}
	if len(drawn.Nodes) != 40 || len(drawn.Links) != len(computed.Links) {
		t.Fatalf("%d cities, %d links drawn, %d computed", len(drawn.Nodes), len(drawn.Links), len(computed.Links))
	}
	for i, l := range drawn.Links {
		if l != computed.Links[i] {
			t.Errorf("link %d is %v, want %v", i, l, computed.Links[i])
		}
	}
}
