package topo

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// fuzz holds a reader to this: a graph is fit for a lab and is the same after it was written and read
// again, and an error has a text and a line of the file.
func fuzz(f *testing.F, pattern string, read func([]byte) (*Graph, error)) {
	files, _ := filepath.Glob("testdata/" + pattern)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := read(text)
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Text == "" || e.Line < 0 || e.Line > 1+countLines(text) {
				t.Errorf("error without a place or text: %v", err)
			}
			return
		}
		checkGraph(t, g)
		written, err := g.NodeLink()
		if err != nil {
			t.Fatal(err)
		}
		again, err := readNodeLink(written)
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if !reflect.DeepEqual(names(again), names(g)) || len(again.Links) != len(g.Links) {
			t.Errorf("became\n%+v\nfrom\n%+v", again, g)
		}
		for i := range g.Links {
			if again.Links[i] != g.Links[i] {
				t.Errorf("link %d became %+v from %+v", i, again.Links[i], g.Links[i])
			}
		}
	})
}

func countLines(text []byte) (n int) {
	for _, b := range text {
		if b == '\n' {
			n++
		}
	}
	return n
}

func names(g *Graph) (all []string) {
	for _, n := range g.Nodes {
		all = append(all, n.Name)
	}
	return all
}

func checkGraph(t *testing.T, g *Graph) {
	seen := map[string]bool{}
	for _, n := range g.Nodes {
		if !labName.MatchString(n.Name) || seen[n.Name] {
			t.Errorf("name %q", n.Name)
		}
		seen[n.Name] = true
		if n.At != nil && n.At.check() != nil {
			t.Errorf("position %+v", n.At)
		}
	}
	for _, l := range g.Links {
		if l.Ends[0] == l.Ends[1] || l.Ends[0] < 0 || l.Ends[1] < 0 || max(l.Ends[0], l.Ends[1]) >= len(g.Nodes) || !(l.Length >= 0) || l.Ways[0].Delay < 0 || !(l.Ways[0].Weight >= 0) {
			t.Errorf("link %+v", l)
		}
	}
	g.Summary()
	if err := g.Largest().Connected(); err != nil {
		t.Error(err)
	}
}

func FuzzGraphML(f *testing.F)   { fuzz(f, "*.graphml", readGraphML) }
func FuzzGML(f *testing.F)       { fuzz(f, "*.gml", readGML) }
func FuzzNodeLink(f *testing.F)  { fuzz(f, "*.json", readNodeLink) }
func FuzzRelations(f *testing.F) { fuzz(f, "*.as-rel2", readRelations) }
