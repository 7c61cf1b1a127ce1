package emubench

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/emu"
)

// hopLinks are the links of a chain end to end where they are emulated: fast and short enough to change nothing but
// that every packet waits for its time on every one.
var hopLinks = emu.Params{Rate: 100e9, Delay: 10 * time.Microsecond}

// kinds are what is measured end to end, in the order of tables.
var kinds = []string{oursKind, kernelKind, mininetKind}

// A cell is one thing that was measured end to end.
type cell struct {
	kind    string
	frame   int // 0: one TCP stream
	routers int
}

// ends measures chains of all kinds and lengths, in alternating turns.
func (b *run) ends(ctx context.Context) error {
	b.through = map[cell][]float64{}
	for _, n := range b.size.lengths {
		b.log("end to end: %d routers", n)
		if err := b.endsOf(ctx, n); err != nil {
			return err
		}
	}
	return b.longest(ctx)
}

// endsOf measures chains of n routers.
func (b *run) endsOf(ctx context.Context, n int) error {
	chains, err := b.chains(ctx, n)
	defer func() {
		for _, c := range chains {
			c.Close()
		}
	}()
	if err != nil {
		return err
	}
	for _, frame := range b.size.loads {
		if err := b.compare(ctx, chains, frame, n); err != nil {
			return err
		}
	}
	return nil
}

// chains are one of each kind.
func (b *run) chains(ctx context.Context, n int) (all []*Chain, err error) {
	links := [2]emu.Params{hopLinks, hopLinks}
	for _, kind := range kinds {
		var c *Chain
		switch {
		case kind == oursKind:
			c, err = newOurChain(ctx, b.engine, n, Class, links)
		case kind == kernelKind:
			c, err = newKernelChain(ctx, n)
		case b.noMininet == nil:
			c, err = newMininetChain(ctx, n)
		default:
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

// compare sends one load through all chains in turns.
func (b *run) compare(ctx context.Context, chains []*Chain, frame, n int) error {
	var lanes []*lane
	for _, c := range chains {
		lanes = append(lanes, &lane{name: c.Kind, run: b.load(c, frame)})
	}
	times := b.size.rounds
	if n == goalLength {
		times *= 2
	}
	if err := rounds(ctx, times, lanes); err != nil {
		return err
	}
	for i, c := range chains {
		b.through[cell{c.Kind, frame, n}] = lanes[i].got
	}
	return nil
}

// load is a turn: packets a second, or Gbit/s of a stream.
func (b *run) load(c *Chain, frame int) func(context.Context) (float64, error) {
	l := Load{Frame: frame, Skip: b.size.skip, Count: b.size.count}
	return func(ctx context.Context) (float64, error) {
		flow, err := l.Through(ctx, c)
		if frame == 0 {
			return flow.Gbit(), err
		}
		return flow.PerSecond(), err
	}
}

// Lengths that goals are about.
const (
	goalLength = 16
	longLength = 64
)

// longest compares the longest chain of ours with the shortest.
func (b *run) longest(ctx context.Context) error {
	links := [2]emu.Params{hopLinks, hopLinks}
	var lanes []*lane
	for _, n := range []int{1, longLength} {
		lanes = append(lanes, &lane{name: fmt.Sprintf("%d routers", n), run: func(ctx context.Context) (float64, error) {
			c, err := newOurChain(ctx, b.engine, n, Class, links) // one at a time: each wants most of a processor for certain
			if err != nil {
				return 0, err
			}
			defer c.Close()
			return b.load(c, smallFrame)(ctx)
		}})
	}
	if err := rounds(ctx, 2*b.size.rounds, lanes); err != nil {
		return err
	}
	b.lost = bench.Ratios(lanes[1].got, lanes[0].got)
	for i := range b.lost {
		b.lost[i] = 100 * (1 - b.lost[i])
	}
	return nil
}

// endRows are the goals of what was measured end to end.
func (b *run) endRows() (rows []bench.Row) {
	if b.through == nil {
		return nil
	}
	ours := func(frame int) []float64 { return b.through[cell{oursKind, frame, goalLength}] }
	for _, peer := range []string{kernelKind, mininetKind} {
		if peer == mininetKind && b.noMininet != nil {
			continue
		}
		theirs := func(frame int) []float64 { return b.through[cell{peer, frame, goalLength}] }
		aims := [2]string{">= 7", ">= 1.6"}
		rows = append(rows,
			bench.NewRow(fmt.Sprintf("end to end, %d routers, %d bytes: packets/s, ours / %s", goalLength, smallFrame, peer),
				"ratio", aims[0], peerName(peer), bench.Ratios(ours(smallFrame), theirs(smallFrame))),
			bench.NewRow(fmt.Sprintf("end to end, %d routers, one TCP stream: ours / %s", goalLength, peer),
				"ratio", aims[1], peerName(peer), bench.Ratios(ours(0), theirs(0))))
	}
	return append(rows, bench.NewRow(fmt.Sprintf("end to end: packets/s lost from 1 to %d routers", longLength), "%", "<= 35", "1 router", b.lost))
}

func peerName(kind string) string {
	if kind == mininetKind {
		return "Mininet 2.3 LinuxRouter"
	}
	return "kernel namespaces"
}

// cellRows are all that was measured end to end, for those who draw it themselves.
func (b *run) cellRows() (rows []bench.Row) {
	for _, frame := range b.size.loads {
		for _, n := range b.size.lengths {
			for _, kind := range kinds {
				got := b.through[cell{kind, frame, n}]
				if len(got) == 0 {
					continue
				}
				what, unit := fmt.Sprintf("%d bytes", frame), "1/s"
				if frame == 0 {
					what, unit = "one TCP stream", "Gbit/s"
				}
				rows = append(rows, bench.NewRow(fmt.Sprintf("end to end, %d routers, %s: %s", n, what, kind), unit, "", "", got))
			}
		}
	}
	return rows
}
