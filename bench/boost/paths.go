package boost

import (
	"context"
	"net/netip"
)

// twoPathsLab has two paths between the agents, by a router each: unlike in rate and round trip, with a queue of one product of
// both.
const twoPathsLab = `
name: benchboost
nodes:
  c1: host
  x: {kind: plain}
  p1: {kind: plain}
  p2: {kind: plain}
  y: {kind: plain}
  s1: host
links:
  - [c1, x]
  - {ends: [x, p1], delay: 25ms, rate: 300Mbit, queue: 1875KB, seed: 1}
  - [p1, y]
  - {ends: [x, p2], delay: 15ms, rate: 150Mbit, queue: 563KB, seed: 2}
  - [p2, y]
  - [y, s1]
`

// twoPaths gives each agent an address for each path, which all take the way over its router, and no other one.
func (b *rig) twoPaths(ctx context.Context) error {
	b.near.Doors = []netip.Addr{netip.MustParseAddr("198.18.9.1"), netip.MustParseAddr("198.18.10.1")}
	b.far.Doors = []netip.Addr{netip.MustParseAddr("198.18.9.2"), netip.MustParseAddr("198.18.10.2")}
	for i, middle := range []string{"p1", "p2"} {
		near, far := b.near.Doors[i].String(), b.far.Doors[i].String()
		for _, way := range [][3]string{{"x", far, middle}, {middle, far, "y"}, {"y", near, middle}, {middle, near, "x"}} {
			if err := b.route(ctx, way[0], way[1]+"/32", b.lab.Plan().Node(way[2]).Own4.String()); err != nil {
				return err
			}
		}
		for node, at := range map[string]string{"x": near, "y": far} {
			if _, err := b.ip(ctx, node, "address", "replace", at+"/32", "dev", "lo"); err != nil {
				return err
			}
		}
	}
	return nil
}

// paths compares one boosted connection over both paths with what each of them carries of one alone, at some loss on the longer
// path.
func (b *rig) paths(ctx context.Context) error {
	if err := b.link(ctx, "x->p1 loss "+lossOfMost); err != nil {
		return err
	}
	both, first, second := b.over("both paths", 0, 2), b.over("the first path", 0, 1), b.over("the second path", 1, 2)
	if err := b.turns(ctx, "over two paths", both, first, second); err != nil {
		return err
	}
	b.add(judged("boosted over two paths, "+lossOfMost+" loss on one: goodput, of their sum", "ratio", ">= 0.95", rated(first)+", "+rated(second),
		paired(both.all, paired(first.all, second.all, func(a, b float64) float64 { return a + b }), quotient)))
	return nil
}

// over is one boosted connection while agents have some of the paths.
func (b *rig) over(name string, from, to int) *contender {
	boosted := b.boosted()
	return &contender{name: name, run: func(ctx context.Context) (float64, error) {
		b.agents.Doors(b.near.Doors[from:to], b.far.Doors[from:to])
		if err := b.agents.RestartWith(ctx, ""); err != nil {
			return 0, err
		}
		return boosted.run(ctx)
	}}
}
