package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

// LinkLab is the lab of the link benchmark: one emulated link, between a and r.
const LinkLab = `
name: benchlink
nodes:
  ctl: controller
  r: {kind: router, service: true}
  a: host
links:
  - {ends: [a, r], delay: 0s, seed: 1}
`

// Link asks an emulated link for rates, delays and losses and measures what it delivers, d long each.
func Link(ctx context.Context, l *lab.Lab, d time.Duration) (Report, error) {
	b := &linkBench{lab: l, d: d}
	p, err := openProbe(l, "a", "r")
	if err != nil {
		return b.rep, err
	}
	defer p.close()
	b.probe = p
	if err := b.meet(ctx); err != nil {
		return b.rep, err
	}
	steps := []func(context.Context) error{b.idleDelay, b.loadedDelay, b.losses}
	for _, rate := range []uint64{10e6, 50e6, 200e6} {
		steps = append(steps, func(ctx context.Context) error { return b.rate(ctx, rate) })
	}
	for _, step := range append(steps, b.stream) {
		if err := step(ctx); err != nil {
			return b.rep, err
		}
	}
	return b.rep, b.notes()
}

type linkBench struct {
	lab   *lab.Lab
	probe *linkProbe
	d     time.Duration
	rep   Report
}

// set changes the link; what was on its way has left afterwards.
func (b *linkBench) set(ctx context.Context, text string) error {
	a, err := file.ParseAction("link " + text)
	if err == nil {
		err = b.lab.Do(ctx, a)
	}
	b.probe.settle(100 * time.Millisecond)
	return err
}

// line is the present state of the direction from a to r.
func (b *linkBench) line() (emu.LineStats, error) {
	links, err := b.lab.Engine().Links()
	if err != nil {
		return emu.LineStats{}, err
	}
	return links[0].Lines[0], nil
}

// meet waits until the neighbours know each other.
func (b *linkBench) meet(ctx context.Context) error {
	buf := make([]byte, probeBytes)
	for range 100 {
		if err := b.probe.send(buf, 0); err != nil {
			return err
		}
		if len(b.probe.settle(50*time.Millisecond)) > 0 {
			return ctx.Err()
		}
	}
	return fmt.Errorf("no probe arrives over the link; see: scaffold lab link")
}

const askedDelay = 20 * time.Millisecond

func (b *linkBench) idleDelay(ctx context.Context) error {
	return b.delay(ctx, "idle", 100)
}

// loadedDelay has a TCP stream at 1 Gbit/s in the other direction.
func (b *linkBench) loadedDelay(ctx context.Context) error {
	if err := b.set(ctx, "r->a rate 1Gbit"); err != nil {
		return err
	}
	r, err := NewRig(b.lab)
	if err != nil {
		return err
	}
	to := target(b.lab.Plan().Node("a").LinkLocal.WithZone(b.lab.Plan().Node("r").Ports[0].Dev))
	server, err := serve(r, "a", "[::]:7")
	if err != nil {
		return err
	}
	defer server.Kill() //nolint:errcheck // it serves nobody else
	done := make(chan error, 1)
	go func() { // ends with the stream, which ends by itself
		_, err := measure(ctx, r, "r", "stream", "--to", to, "--duration", (b.d + time.Second).String())
		done <- err
	}()
	if err := b.delay(ctx, "beside 1 Gbit/s TCP", 300); err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	return b.set(ctx, "a r rate none delay 0s")
}

// delay sends probes at random times, a thousand a second.
func (b *linkBench) delay(ctx context.Context, when string, aim int) error {
	if err := b.set(ctx, "a r delay "+askedDelay.String()); err != nil {
		return err
	}
	buf, rng := make([]byte, probeBytes), rand.New(rand.NewPCG(1, 2))
	for end := time.Now().Add(b.d); time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(time.Duration(rng.IntN(int(2 * time.Millisecond))))
		if err := b.probe.send(buf, 0); err != nil {
			return err
		}
	}
	var late []float64
	for _, a := range b.probe.settle(200 * time.Millisecond) {
		late = append(late, float64(a.came-a.sent-askedDelay)/1e3)
	}
	s, err := b.line()
	if err != nil {
		return err
	}
	timer := NewRow(fmt.Sprintf("delay of %v, %s: timer error p99", askedDelay, when), "us", fmt.Sprintf("<= %d", aim), "",
		[]float64{float64(s.Late.P99) / 1e3})
	timer.N = int(s.Late.Packets)
	name := fmt.Sprintf("delay of %v, %s: send to arrival, error", askedDelay, when)
	b.rep.Rows = append(b.rep.Rows, timer,
		NewRow(name+" p50", "us", "", "", late),
		QuantileRow(name+" p99", "us", "", "", late, 0.99))
	b.rep.Notes = append(b.rep.Notes, fmt.Sprintf("timer of the engine, %s: p50 %v, p99.9 %v, max %v", when, s.Late.P50, s.Late.P999, s.Late.Max))
	return ctx.Err()
}

// losses compares what is lost with what the seed says, to the packet.
func (b *linkBench) losses(ctx context.Context) error {
	if err := b.set(ctx, "a->r loss 1%"); err != nil {
		return err
	}
	before, err := b.line()
	if err != nil {
		return err
	}
	const probes = 20000
	buf := make([]byte, probeBytes)
	for i := range probes {
		if err := b.probe.send(buf, 1); err != nil {
			return err
		}
		if i%64 == 63 {
			time.Sleep(500 * time.Microsecond)
		}
	}
	arrived := len(b.probe.settle(200 * time.Millisecond))
	after, err := b.line()
	if err != nil {
		return err
	}
	p := after.Params
	predicted := p.Predict(after.Counters.Packets) - p.Predict(before.Counters.Packets)
	lost := after.Counters.Lost - before.Counters.Lost
	b.rep.Rows = append(b.rep.Rows,
		NewRow("loss of 1%: lost", "%", "", "", []float64{100 * float64(probes-arrived) / probes}),
		NewRow("loss of 1%: packets lost otherwise than the seed says", "packets", "= 0", "", []float64{float64(lost) - float64(predicted)}))
	b.rep.Rows[len(b.rep.Rows)-2].N = probes
	return b.set(ctx, "a->r loss 0%")
}

// maxWaiting is how many probes may wait in the link: the engine has memory for 65536.
const maxWaiting = 40000

// rate fills the link's queue at once, so that the link never waits for the sender, and looks at how
// long it takes to empty.
func (b *linkBench) rate(ctx context.Context, rate uint64) error {
	if err := b.set(ctx, "a r queue 500MB rate "+emu.FormatRate(rate)); err != nil {
		return err
	}
	buf, n := make([]byte, probeBytes), min(maxWaiting, int(b.d.Seconds()*float64(rate)/8/probeFrame))
	for i := range n {
		if err := b.probe.send(buf, 2); err != nil {
			return err
		}
		if i%256 == 255 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	all := b.probe.settle(300 * time.Millisecond)
	if len(all) < 2 {
		return fmt.Errorf("rate %s: %d of %d probes arrived", emu.FormatRate(rate), len(all), n)
	}
	delivered := float64(len(all)-1) * probeFrame * 8 / (all[len(all)-1].came - all[0].came).Seconds()
	row := NewRow("rate of "+emu.FormatRate(rate)+": error", "%", "<= 0.5", "", []float64{100 * math.Abs(delivered/float64(rate)-1)})
	row.N = len(all)
	b.rep.Rows = append(b.rep.Rows, row)
	return b.set(ctx, "a r queue 0 rate none")
}

// stream is one TCP connection over a link that does nothing.
func (b *linkBench) stream(ctx context.Context) error {
	r, err := NewRig(b.lab)
	if err != nil {
		return err
	}
	server, err := serve(r, "a", "[::]:7")
	if err != nil {
		return err
	}
	defer server.Kill() //nolint:errcheck // it serves nobody else
	to := target(b.lab.Plan().Node("a").LinkLocal.WithZone(b.lab.Plan().Node("r").Ports[0].Dev))
	res, err := measure(ctx, r, "r", "stream", "--to", to, "--duration", b.d.String())
	if err != nil {
		return err
	}
	b.rep.Rows = append(b.rep.Rows, NewRow("one TCP stream, no limits", "Gbit/s", "", "", []float64{res.GbitPerSecond()}))
	return nil
}

// notes say how the engine itself fared.
func (b *linkBench) notes() error {
	s, err := b.line()
	if err != nil {
		return err
	}
	b.rep.Notes = append(b.rep.Notes,
		fmt.Sprintf("refused %d, no memory %d; seed 1", s.Refused, s.Starved),
		"send to arrival is from send() to the far kernel's time stamp: it includes both stacks and what delays the sender")
	return nil
}
