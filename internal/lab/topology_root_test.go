package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A fat tree's pods reach each other, and who visits the lab later needs neither its file nor its map.
func TestALabOfAMapIsVisitedWithoutTheMap(t *testing.T) {
	nstest.Root(t)
	tree, err := file.MakeTopology([]file.Pair{{Key: "generate", Value: "fat-tree"}, {Key: "k", Value: "2"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := tree.Graph.NodeLink()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "tree.json"), text, 0o644)
	source := "name: NAME\ntopology: {file: tree.json, delay: 1ms}\nnodes: {h1: host, h2: host}\nlinks: [[h1, edge-1-1], [h2, edge-2-1]]\n"
	path := filepath.Join(dir, "tree.yaml")
	os.WriteFile(path, []byte(strings.Replace(source, "NAME", nstest.LabNamed("tree"), 1)), 0o644)
	f, err := file.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), f, Options{Log: t.Logf}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Down(context.Background(), f.Name, Options{}) })
	os.RemoveAll(dir)
	l, err := Open(f.Name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, "the engine's log", func() error { return reaches(t, l, "h1", "h2") })
}
