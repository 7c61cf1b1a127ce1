package emubench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"scaffold.dev/scaffold/bench"
)

// Options of a run.
type Options struct {
	Quick   bool                             // a part of it, in three minutes
	Engine  Child                            // how RunEngine is run as a process of its own
	Only    []string                         // parts; nil for all
	Product string                           // the scaffold whose labs are measured; this process's own program if empty
	Log     func(format string, args ...any) // progress
}

// size is how much is measured.
type size struct {
	lengths []int // of chains and strings, in routers
	frames  []int // bytes, of strings
	loads   []int // of chains; 0 is one TCP stream
	rounds  int
	skip    time.Duration // of each load
	count   time.Duration // that follows
	long    time.Duration // count of loads over one link
	packets uint64        // of rates and losses in real time
	hops    int           // of a string, about
	larges  int           // labs of many routers, of the list
}

var (
	whole = size{lengths: []int{1, 2, 4, 8, 16, 32, 64}, frames: []int{smallFrame, 576, 1500}, loads: []int{smallFrame, 576, 1500, 0},
		rounds: 3, skip: 200 * time.Millisecond, count: 600 * time.Millisecond, long: 3 * time.Second, packets: million, hops: 16e6, larges: 2}
	quick = size{lengths: []int{1, 16, 64}, frames: []int{smallFrame}, loads: []int{smallFrame, 0},
		rounds: 2, skip: 200 * time.Millisecond, count: 500 * time.Millisecond, long: 2 * time.Second, packets: million / 10, hops: 8e6, larges: 1}
)

// A run is one benchmark under way.
type run struct {
	size      size
	engine    Child
	product   string
	log       func(format string, args ...any)
	noMininet error
	through   map[cell][]float64
	speeds    map[knot][]float64
	lost      []float64 // % of packets a second, from one router to the longest chain
	rows      []bench.Row
	notes     []string
}

// A part of the benchmark.
type part struct {
	name string
	do   func(*run, context.Context) error
}

func parts() []part {
	return []part{{"alone", (*run).alone}, {"ends", (*run).ends}, {"exact", (*run).exact}, {"repeat", (*run).repeat}, {"size", (*run).sizes}, {"frr", (*run).converged}}
}

// Parts are the names of parts, for Options.Only.
func Parts() (names []string) {
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// Run measures.
func Run(ctx context.Context, opt Options) (*Result, error) {
	for _, name := range opt.Only {
		if !slices.Contains(Parts(), name) {
			return nil, fmt.Errorf("no part %q; expected %s", name, strings.Join(Parts(), ", "))
		}
	}
	b := &run{size: whole, engine: opt.Engine, product: opt.Product, log: opt.Log}
	if opt.Quick {
		b.size = quick
	}
	if b.noMininet = FindMininet(ctx); b.noMininet != nil {
		b.log("%v", b.noMininet)
		b.note("%v", b.noMininet)
	}
	for _, p := range parts() {
		if len(opt.Only) > 0 && !slices.Contains(opt.Only, p.name) {
			continue
		}
		if err := p.do(b, ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return b.result(), nil
}

func (b *run) add(rows ...bench.Row) { b.rows = append(b.rows, rows...) }

func (b *run) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// result sums up, the goals first.
func (b *run) result() *Result {
	goals, speeds := b.speedRows()
	r := &Result{run: b}
	r.Rows = append(goals, b.endRows()...)
	r.Rows = append(r.Rows, b.rows...)
	r.Rows = append(append(r.Rows, speeds...), b.cellRows()...)
	r.Notes = append(b.notes,
		fmt.Sprintf("%d processors; turns of all kinds alternate; N counts turns, of ratios their pairs", runtime.NumCPU()),
		"engine alone: a source, routers in a row and a sink in virtual time, one thread, 1000 prefixes in each table, 4096 destinations in random order; hops are routers times packets that arrived, time is the process's own of processors, source and sink included",
		fmt.Sprintf("end to end: two namespaces, the engine a process of its own with its interfaces in them, class mode, every link emulated with %s; what arrives of datagrams sent as fast as it goes (sendmmsg), and of one TCP stream (%s)", hopLinks, congestion),
		"kernel: router namespaces with veth pairs; Mininet: its LinuxRouter with IPv6; the same addresses and routes in all three")
	return r
}
