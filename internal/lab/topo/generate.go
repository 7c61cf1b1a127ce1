package topo

import (
	"fmt"
	"slices"
	"strings"
)

// MaxGenerated bounds the nodes of generated graphs.
const MaxGenerated = 10_000

// Options are what generators take; each has its own.
type Options struct {
	Size int     // nodes
	K    int     // ports of a switch of a fat tree
	Side float64 // km, of the square in which the nodes of a Gabriel graph lie
	Seed uint64  // of all that is drawn
}

// Names of options, as [Generator.Options] and messages have them.
const (
	OptionSize = "size"
	OptionK    = "k"
	OptionSide = "side"
	OptionSeed = "seed"
)

// A Generator makes graphs.
type Generator struct {
	Name     string
	About    string
	Required []string // options that must be given
	Options  []string // options that may be given
	Least    int      // the smallest size
	make     func(Options) (*Graph, error)
}

// Generators are all there are.
var Generators = []Generator{
	{"line", "routers r1, r2, ... in a row", []string{OptionSize}, nil, 1, line},
	{"ring", "routers r1, r2, ... in a circle", []string{OptionSize}, nil, 3, ring},
	{"fat-tree", "core-C, agg-POD-A and edge-POD-E: three layers of switches with k ports", []string{OptionK}, nil, 0, fatTree},
	{"gabriel", "routers r1, r2, ... at random places of a square, joined where no other is between", []string{OptionSize}, []string{OptionSide, OptionSeed}, 1, gabrielSquare},
	{"as-like", "as1, as2, ...: autonomous systems in tiers, with providers, customers and peers", []string{OptionSize}, []string{OptionSeed}, 3, asLike},
}

// DefaultSide is the side of a Gabriel graph's square in km: delays across it are those across western
// Europe.
const DefaultSide = 1000

// Takes reports whether the generator has an option of that name.
func (g Generator) Takes(option string) bool {
	return slices.Contains(g.Required, option) || slices.Contains(g.Options, option)
}

// FindGenerator finds one by name; the error lists all.
func FindGenerator(name string) (Generator, error) {
	names := make([]string, len(Generators))
	for i, g := range Generators {
		if g.Name == name {
			return g, nil
		}
		names[i] = g.Name
	}
	return Generator{}, fmt.Errorf("unknown generator %q; expected one of %s", cut(name), strings.Join(names, ", "))
}

// Generate makes a graph; the same options make the same one in every version.
func (g Generator) Generate(o Options) (*Graph, error) {
	if o.Side == 0 {
		o.Side = DefaultSide
	}
	switch {
	case g.Takes(OptionSize) && (o.Size < g.Least || o.Size > MaxGenerated):
		return nil, fmt.Errorf("%s of size %d: expected %d to %d nodes", g.Name, o.Size, g.Least, MaxGenerated)
	case !(o.Side > 0 && o.Side <= maxFlat):
		return nil, fmt.Errorf("%s with a side of %v km: expected more than 0 and at most %g", g.Name, o.Side, float64(maxFlat))
	}
	graph, err := g.make(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.Name, err)
	}
	graph.Name = g.Name
	return graph, nil
}

// number adds n nodes PREFIX1, PREFIX2, ...
func (g *Graph) number(prefix string, n int) {
	for i := range n {
		name := fmt.Sprint(prefix, i+1)
		g.add(name, name, nil)
	}
}

func line(o Options) (*Graph, error) {
	g := &Graph{}
	g.number("r", o.Size)
	for n := 1; n < o.Size; n++ {
		g.join(n-1, n)
	}
	return g, nil
}

func ring(o Options) (*Graph, error) {
	g, err := line(o)
	g.join(o.Size-1, 0)
	return g, err
}
