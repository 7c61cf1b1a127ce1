package emubench

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/traffic"
)

// repeat measures in virtual time: rates and losses over 10^6 packets, and whether the same seed gives the same.
func (b *run) repeat(ctx context.Context) error {
	b.log("virtual time: rate, loss and repetition")
	rate, err := one(emu.Params{Rate: 1e9}, 1500)
	if err != nil {
		return err
	}
	got := float64(rate.sink.Packets-1) * 1500 * 8 / (rate.sink.Last - rate.sink.First).Seconds()
	row := bench.NewRow("rate of 1 Gbit/s, virtual time: error", "%", "<= 0.5", "", []float64{percentOff(got, 1e9)})
	row.N = int(rate.sink.Packets)
	b.add(row)
	loss, err := one(emu.Params{Loss: askedLoss, Seed: 1}, smallFrame)
	if err != nil {
		return err
	}
	b.lossRows("virtual time", loss.line.Packets, loss.line.Lost, loss.said)
	return b.same(ctx)
}

// passed is what 10^6 packets made of one link.
type passed struct {
	sink *traffic.Sink
	line emu.Counters
	said uint64 // how many packets the seed loses
}

// one sends 10^6 packets over one link in virtual time, twice as fast as a rate lets them pass.
func one(p emu.Params, frame int) (passed, error) {
	n := emu.New(emu.Options{Virtual: true})
	defer n.Close()
	const often = 6 * time.Microsecond // 1500 bytes at 2 Gbit/s
	source := &traffic.Source{From: address(0, left), To: someDestinations()[:1], Size: frame, Gap: often, Count: million}
	got := passed{sink: &traffic.Sink{}}
	link, err := n.Link(n.Router("source", source), n.Router("sink", got.sink), both(p))
	if err == nil {
		err = n.Run(million*often + time.Second)
	}
	if err != nil {
		return got, err
	}
	stats, err := link.Stats()
	got.line, got.said = stats[0].Counters, p.Predict(stats[0].Counters.Packets)
	return got, err
}

// same compares the traces of runs of one seed: of two runs, of one and two threads, and of another seed.
func (b *run) same(ctx context.Context) error {
	sum := func(seed uint64, shards []int) (uint64, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return trace(seed, shards)
	}
	first, err := sum(1, nil)
	if err != nil {
		return err
	}
	odd := []float64{}
	for _, again := range []struct {
		seed   uint64
		shards []int
		equal  bool
	}{{1, nil, true}, {1, cut(traceLength), true}, {1, alternating(traceLength), true}, {2, nil, false}} {
		got, err := sum(again.seed, again.shards)
		if err != nil {
			return err
		}
		odd = append(odd, float64(btoi((got == first) != again.equal)))
	}
	b.add(bench.QuantileRow("virtual time: runs of one seed with another trace, or of two with the same", "runs", "= 0", "", odd, 1))
	b.note("traces: %d routers, %d packets over links with rate, delay, jitter, loss, duplication and reordering; once more, cut in two threads in the middle, alternating between two threads, and with another seed; trace %016x", traceLength, tracePackets, first)
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

const (
	traceLength  = 16
	tracePackets = 50000
)

// trace runs a string whose links do all that links do, and sums up every arrival everywhere.
func trace(seed uint64, shards []int) (uint64, error) {
	s := String{Routers: traceLength, Frame: smallFrame, Mode: LPM, Shards: shards, Links: emu.Params{
		Rate: 1e9, Delay: time.Millisecond, Jitter: time.Millisecond / 2, Unordered: true, Loss: 0.01, BurstLoss: 0.01, Duplicate: 0.01, Reorder: 0.01, Seed: seed}}
	n, source, sink, err := s.build()
	if err != nil {
		return 0, err
	}
	defer n.Close()
	n.Trace()
	source.Burst, source.Gap, source.Count = 1, 2*time.Microsecond, tracePackets
	if err := n.Run(time.Second); err != nil {
		return 0, err
	}
	if sink.Packets == 0 {
		return 0, fmt.Errorf("string of %d routers: no packet arrived", traceLength)
	}
	return n.Sum()
}
