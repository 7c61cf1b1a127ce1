package emubench

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/emu"
)

// smallFrame is the size of small packets in the paper: 12 bytes of payload.
const smallFrame = 74

// stringLinks are the links of strings where they are emulated.
var stringLinks = emu.Params{Rate: 100e9, Delay: 200 * time.Microsecond}

// A knot is one kind of string.
type knot struct {
	mode    Mode
	frame   int
	linked  bool // with emulated links
	routers int
}

// alone measures strings inside the engine.
func (b *run) alone(ctx context.Context) error {
	b.speeds = map[knot][]float64{}
	for _, n := range b.size.lengths {
		b.log("engine alone: %d routers", n)
		for _, frame := range b.size.frames {
			if err := b.modes(ctx, frame, n, false); err != nil {
				return err
			}
		}
		if err := b.modes(ctx, smallFrame, n, true); err != nil {
			return err
		}
	}
	return b.placements(ctx)
}

// modes compares both modes of one string.
func (b *run) modes(ctx context.Context, frame, n int, linked bool) error {
	var lanes []*lane
	for _, mode := range []Mode{LPM, Class} {
		s := String{Routers: n, Frame: frame, Mode: mode}
		if linked {
			s.Links = stringLinks
		}
		lanes = append(lanes, &lane{name: string(mode), run: func(ctx context.Context) (float64, error) {
			v, err := s.Run(ctx, b.count(s))
			return v.PerCPU(), err
		}})
	}
	times := b.size.rounds
	if n == goalLength {
		times *= 2
	}
	if err := rounds(ctx, times, lanes); err != nil {
		return err
	}
	b.speeds[knot{LPM, frame, linked, n}], b.speeds[knot{Class, frame, linked, n}] = lanes[0].got, lanes[1].got
	return nil
}

// count is how many packets pass a string: about half a second's.
func (b *run) count(s String) uint64 {
	hops := b.size.hops
	if s.Links != (emu.Params{}) {
		hops /= 4
	}
	return uint64(max(hops/64, min(hops/8, hops/s.Routers)))
}

// perCPU is the unit of strings.
const perCPU = "M hops/CPU-s"

func (k knot) name() string {
	links := "no delays"
	if k.linked {
		links = "emulated links"
	}
	return fmt.Sprintf("engine alone, %d routers, %d bytes, %s, %s", k.routers, k.frame, k.mode, links)
}

// speedRows are the goals first.
func (b *run) speedRows() (goals, all []bench.Row) {
	aims := map[knot]string{{LPM, smallFrame, false, goalLength}: ">= 80", {Class, smallFrame, false, goalLength}: ">= 250"}
	for _, frame := range b.size.frames {
		for _, linked := range []bool{false, true} {
			for _, n := range b.size.lengths {
				for _, mode := range []Mode{LPM, Class} {
					k := knot{mode, frame, linked, n}
					got, aim := b.speeds[k], aims[k]
					switch {
					case len(got) == 0:
					case aim != "":
						goals = append(goals, bench.NewRow(k.name(), perCPU, aim, "", got))
					default:
						all = append(all, bench.NewRow(k.name(), perCPU, "", "", got))
					}
				}
			}
		}
	}
	return goals, all
}

// Placements of the paper's Figure 7, with the two shards that there are: where each router runs.
func cut(n int) []int         { return where(n, func(i int) int { return 2 * i / n }) }
func alternating(n int) []int { return where(n, func(i int) int { return i % 2 }) }

func where(n int, of func(int) int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = of(i)
	}
	return all
}

// placed is the number of routers whose placement is forced, as in the paper's Figure 6.
const placed = 4

// placements compares strings whose routers are forced onto one shard, and onto two.
func (b *run) placements(ctx context.Context) error {
	b.log("engine alone: forced placements")
	ways := []struct {
		name   string
		shards []int
	}{{"one shard", nil}, {"cut in the middle", cut(placed)}, {"alternating", alternating(placed)}}
	for _, frame := range b.size.frames {
		var lanes []*lane
		wall := make([][]float64, len(ways))
		for i, w := range ways {
			s := String{Routers: placed, Frame: frame, Mode: Class, Links: stringLinks, Shards: w.shards}
			lanes = append(lanes, &lane{name: w.name, run: func(ctx context.Context) (float64, error) {
				v, err := s.Run(ctx, b.count(s))
				wall[i] = append(wall[i], float64(v.Hops)/v.Wall.Seconds())
				return v.PerCPU(), err
			}})
		}
		if err := rounds(ctx, b.size.rounds, lanes); err != nil {
			return err
		}
		for i, w := range ways {
			name := fmt.Sprintf("placement of %d routers, %d bytes: %s", placed, frame, w.name)
			b.rows = append(b.rows, bench.NewRow(name, perCPU, "", "", lanes[i].got))
			if i > 0 {
				b.rows = append(b.rows, bench.NewRow(name+", packets/s by the clock, beside one shard", "ratio", "", "one shard", bench.Ratios(wall[i], wall[0])))
			}
		}
	}
	b.note("placements: two shards at most; what caches and sockets that more cores share or do not share change, two cores cannot show")
	return nil
}
