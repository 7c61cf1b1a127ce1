package emubench

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/emu"
)

// exact measures what an emulated link between two hosts delivers of what it is asked for, in real time.
func (b *run) exact(ctx context.Context) error {
	c, err := newOurChain(ctx, b.engine, 0, Class, [2]emu.Params{})
	if err != nil {
		return err
	}
	defer c.Close()
	for _, step := range []func(context.Context, *Chain) error{b.fastStream, b.idleError, b.loadedError, b.realRate, b.realLoss} {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// both are the same parameters in both directions.
func both(p emu.Params) [2]emu.Params { return [2]emu.Params{p, p} }

// fastStream is one TCP stream over a link of 10 Gbit/s and 10 ms.
func (b *run) fastStream(ctx context.Context, c *Chain) error {
	b.log("one TCP stream at 10 Gbit/s and 10 ms")
	if _, err := c.engine.Set(both(emu.Params{Rate: 10e9, Delay: 10 * time.Millisecond})); err != nil {
		return err
	}
	var got []float64
	for range b.size.rounds {
		flow, err := Load{Skip: 3 * time.Second, Count: b.size.long}.Through(ctx, c)
		if err != nil {
			return err
		}
		got = append(got, flow.Gbit())
	}
	b.add(bench.NewRow("one TCP stream ("+congestion+") over an emulated 10 Gbit/s x 10 ms link", "Gbit/s", ">= 9", "", got))
	return nil
}

// idleError and loadedError are by how much packets leave the link too late while a stream fills it.
func (b *run) idleError(ctx context.Context, c *Chain) error {
	return b.timing(ctx, c, "idle machine", 100)
}

// hogs are programs that only burn processor time: more than there are processors.
const hogs = 3

func (b *run) loadedError(ctx context.Context, c *Chain) error {
	for range hogs {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.startHere(cmd); err != nil {
			return err
		}
		defer cmd.Process.Kill() // the chain waits for it
	}
	return b.timing(ctx, c, fmt.Sprintf("%d CPU hogs", hogs), 300)
}

// asked is the delay of the link whose error is measured.
const asked = 10 * time.Millisecond

func (b *run) timing(ctx context.Context, c *Chain, when string, aim int) error {
	b.log("delay error at 1 Gbit/s, %s", when)
	var p50, p99 []float64
	packets := uint64(0)
	for range b.size.rounds {
		if _, err := c.engine.Set(both(emu.Params{Rate: 1e9, Delay: asked})); err != nil {
			return err
		}
		if _, err := (Load{Skip: b.size.skip, Count: b.size.long}).Through(ctx, c); err != nil {
			return err
		}
		s, err := c.engine.State()
		if err != nil {
			return err
		}
		late := s.Links[0][0].Late
		if !s.Links[0][0].Realtime {
			b.note("delay error, %s: the kernel did not run the engine before ordinary programs", when)
		}
		p50, p99 = append(p50, micros(late.P50)), append(p99, micros(late.P99))
		packets += late.Packets
	}
	name := fmt.Sprintf("delay of %v at 1 Gbit/s, %s: error ", asked, when)
	b.add(bench.NewRow(name+"p50", "us", "", "", p50), bench.NewRow(name+"p99", "us", fmt.Sprintf("<= %d", aim), "", p99))
	b.note("delay error, %s: how much later than its due time the engine let a packet out; p50 and p99 of each of %d runs with one TCP stream, %d packets in all", when, b.size.rounds, packets)
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// million packets are what rates and losses are measured over.
const million = 1_000_000

// realRate floods a link of 1 Gbit/s and counts what comes.
func (b *run) realRate(ctx context.Context, c *Chain) error {
	const rate, frame = 1e9, 1500
	b.log("rate over %d packets", b.size.packets)
	if _, err := c.engine.Set(both(emu.Params{Rate: rate, Queue: rateQueue})); err != nil {
		return err
	}
	count := time.Duration(float64(b.size.packets) * frame * 8 / rate * 1e9)
	flow, err := Load{Frame: frame, Skip: b.size.skip, Count: count}.Through(ctx, c)
	if err != nil {
		return err
	}
	got := flow.PerSecond() * frame * 8
	row := bench.NewRow("rate of 1 Gbit/s, real time: error", "%", "<= 0.5", "", []float64{percentOff(got, rate)})
	row.N = int(flow.Packets)
	b.add(row)
	return nil
}

// rateQueue keeps the link busy while the sender waits for its turn: half a second.
const rateQueue = 60e6

// percentOff is by how much a number differs from what it should be.
func percentOff(got, want float64) float64 { return 100 * math.Abs(got/want-1) }

// askedLoss is a share that 10^6 packets tell within 0.1 % of itself, one standard deviation.
const askedLoss = 0.5

// realLoss floods a link that loses packets, and compares with what was asked and with what the seed says.
func (b *run) realLoss(ctx context.Context, c *Chain) error {
	b.log("loss over %d packets", million)
	before, err := c.engine.Set(both(emu.Params{Loss: askedLoss, Seed: 1}))
	if err != nil {
		return err
	}
	from, now := before.Links[0][0], before.Links[0][0]
	for now.Counters.Packets-from.Counters.Packets < million { // fewer would not tell
		if _, err := (Load{Frame: smallFrame, Skip: time.Millisecond, Count: b.size.count}).Through(ctx, c); err != nil {
			return err
		}
		s, err := c.engine.State()
		if err != nil {
			return err
		}
		now = s.Links[0][0]
	}
	packets, lost := now.Counters.Packets-from.Counters.Packets, now.Counters.Lost-from.Counters.Lost
	said := now.Params.Predict(now.Counters.Packets) - now.Params.Predict(from.Counters.Packets)
	b.lossRows("real time", packets, lost, said)
	return nil
}

func (b *run) lossRows(when string, packets, lost, said uint64) {
	off := bench.NewRow(fmt.Sprintf("loss of %.0f %%, %s: error", 100*askedLoss, when), "%", "<= 0.5", "",
		[]float64{percentOff(float64(lost)/float64(packets), askedLoss)})
	seed := bench.NewRow(fmt.Sprintf("loss of %.0f %%, %s: packets lost otherwise than the seed says", 100*askedLoss, when), "packets", "= 0", "",
		[]float64{float64(lost) - float64(said)})
	off.N, seed.N = int(packets), int(packets)
	b.add(off, seed)
}
