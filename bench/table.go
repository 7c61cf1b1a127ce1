package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/lab/plot"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// A TableSize is how much Table fills.
type TableSize struct{ Services, PerService, Changes, Packets int }

// Table fills a service router's kernel tables with services of perService instances each and
// measures what an instance takes, what one change costs and what the first packet of a flow costs, beside
// tables of fewer services.
func Table(ctx context.Context, size TableSize) (Report, error) {
	t := tableBench{size: size, figure: []plot.Line{{Name: "services at random"}, {Name: "one service"}, {Name: "change"}}}
	for n := 1; n < size.Services; n *= 10 {
		if err := t.measure(ctx, n); err != nil {
			return t.rep, err
		}
	}
	if err := t.measure(ctx, size.Services); err != nil {
		return t.rep, err
	}
	t.rep.Notes = []string{"first packets are test runs of the program, each of another flow, to services drawn at random from all or to one; the kernel's clock around each run is part of it",
		"at random each packet meets a service that no cache of the processor has; to one, all are in its caches"}
	t.rep.Figure = plot.Figure{
		Title: "A service router's tables", Axis: "services of 10 instances", Steps: t.steps, End: float64(len(t.steps) - 1),
		Panels: []plot.Panel{{Label: "first packet, ns", Lines: t.figure[:2]}, {Label: "one change, µs", Lines: t.figure[2:]}},
	}
	return t.rep, nil
}

type tableBench struct {
	size   TableSize
	base   tableCost
	steps  []string
	figure []plot.Line
	rep    Report
}

func (t *tableBench) measure(ctx context.Context, services int) error {
	cost, err := fill(ctx, services, t.size)
	if err != nil {
		return err
	}
	if services == 1 {
		t.base = cost
	}
	at := float64(len(t.steps))
	t.steps = append(t.steps, strconv.Itoa(services))
	for i, samples := range [][]float64{cost.packets, cost.same, cost.changes} {
		t.figure[i].Points = append(t.figure[i].Points, plot.Point{At: at, Value: Quantile(samples, 0.5)})
	}
	if services == 1 || services == 1000 || services == t.size.Services {
		t.rows(services, cost)
	}
	return nil
}

func (t *tableBench) rows(services int, cost tableCost) {
	name := fmt.Sprintf("%d services x %d: ", services, t.size.PerService)
	add := func(what, unit string, samples []float64) {
		t.rep.Rows = append(t.rep.Rows, NewRow(name+what, unit, "", "", samples))
	}
	ratio := func(what string, large, small []float64) {
		r := NewRow(name+what+", beside one service", "ratio", "<= 2", "1 service", []float64{Quantile(large, 0.5) / Quantile(small, 0.5)})
		r.N = len(large)
		t.rep.Rows = append(t.rep.Rows, r)
	}
	add("one change of an instance", "us", cost.changes)
	add("first packet, services at random", "ns", cost.packets)
	add("first packet, one service", "ns", cost.same)
	if services == 1 {
		return
	}
	ratio("change", cost.changes, t.base.changes)
	ratio("first packet, services at random", cost.packets, t.base.packets)
	ratio("first packet, one service", cost.same, t.base.same)
	if services == t.size.Services {
		add("kernel memory per instance", "bytes", []float64{float64(cost.usage.Bytes) / float64(cost.usage.Instances)})
	}
}

// A tableCost is what was measured of one table.
type tableCost struct {
	changes []float64 // us
	packets []float64 // ns, to services drawn at random
	same    []float64 // ns, to one service
	usage   router.Usage
}

// fill loads a table and measures it.
func fill(ctx context.Context, services int, size TableSize) (cost tableCost, err error) {
	space := sid.DefaultSpace()
	r, err := router.Open(router.Config{Space: space})
	if err != nil {
		return cost, err
	}
	defer r.Close(false) // unpinned: the kernel frees it
	for i := range services {
		if ctx.Err() != nil {
			return cost, ctx.Err()
		}
		if err := r.SetService(tableService(i), router.Service{Instances: uint32(size.PerService)}); err != nil {
			return cost, err
		}
		if err := r.SetTable(triple(tableService(i)), targets(space, i, size.PerService)); err != nil {
			return cost, err
		}
	}
	if err := r.Commit(1); err != nil {
		return cost, err
	}
	for i := range size.Changes {
		if ctx.Err() != nil {
			return cost, ctx.Err()
		}
		start := time.Now()
		if err := r.SetTable(triple(tableService(i%services)), targets(space, i+1, size.PerService)); err != nil {
			return cost, err
		}
		cost.changes = append(cost.changes, float64(time.Since(start).Nanoseconds())/1e3)
	}
	if cost.packets, err = firstPackets(ctx, r, space, size.Packets, func() int { return rand.IntN(services) }); err != nil {
		return cost, err
	}
	if cost.same, err = firstPackets(ctx, r, space, size.Packets, func() int { return services / 2 }); err != nil {
		return cost, err
	}
	cost.usage, err = r.Usage()
	return cost, err
}

// firstPackets runs the program on packets to the services that draw names.
func firstPackets(ctx context.Context, r *router.Resolver, space sid.Space, n int, draw func() int) (took []float64, err error) {
	for range n {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		_, d, err := r.Program().Benchmark(firstPacket(space, draw()), 1, nil)
		if err != nil {
			return nil, err
		}
		took = append(took, float64(d.Nanoseconds()))
	}
	return took, nil
}

func tableService(i int) sid.ServiceID {
	return sid.ServiceID{SS: 1, Suffix: sid.Suffix(sid.ReservedSuffixes + i)}
}

// firstPacket is the frame of a SYN to a service. Nothing of the router's looks at its checksum.
func firstPacket(space sid.Space, service int) []byte {
	src, dst := space.Locator(0x201).Addr(rand.Uint64()|1<<63), space.ServiceAddr(tableService(service))
	syn := header.Segment{Src: uint16(1024 + rand.IntN(60000)), Dst: triple(tableService(0)).Port, Flags: header.SYN}
	b := header.AppendIPv6(header.AppendEthernet(nil, nil, nil), src, dst, header.TCP, 64, syn.Len())
	return syn.Append(b)
}

func triple(id sid.ServiceID) sid.Triple { return sid.Triple{Service: id, Proto: sid.TCP, Port: 80} }

func targets(space sid.Space, from, n int) []resolve.Target {
	ts := make([]resolve.Target, n)
	for i := range ts {
		ts[i] = resolve.Target{Locator: space.Locator(uint16(256 + (from*n+i)%60000)), Weight: 100}
	}
	return ts
}
