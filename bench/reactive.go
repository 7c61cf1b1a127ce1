package bench

import (
	"context"
	"fmt"
	"time"
)

// ReactiveSize says how much bench reactive measures.
type ReactiveSize struct {
	Rounds int           // alternating pairs of turns
	Flows  int           // new flows of a turn, one by one
	Gap    time.Duration // between two of them
	Burst  int           // new flows of a turn, all at once
	Python string        // one that has os-ken; "": one is made
}

// Check is an error if a turn has more flows than source ports, which would not be new.
func (s ReactiveSize) Check() error {
	if n := s.Flows + s.Burst + reactiveWarm; n > sources/2 {
		return fmt.Errorf("%d flows a turn are more than there are ports for: at most %d together", n-reactiveWarm, sources/2-reactiveWarm)
	}
	return nil
}

// reactiveWarm flows begin each turn and are not counted.
const reactiveWarm = 50

// Reactive measures what a new flow takes that a controller is asked about, with ours and with os-ken, in
// alternating turns on the same switch.
func Reactive(ctx context.Context, size ReactiveSize, progress func(string, ...any)) (rep Report, err error) {
	n, err := newReactiveNet(ctx)
	if err != nil {
		return rep, err
	}
	defer n.close()
	load, err := openFlowLoad(n)
	if err != nil {
		return rep, err
	}
	defer load.close()
	b := &reactiveBench{net: n, load: load, size: size}
	if b.ours.rival, err = startOurs(n); err != nil {
		return rep, err
	}
	defer b.ours.rival.close()
	progress("make %s ready", osKen)
	if b.peer.rival, err = startPeer(ctx, n, size.Python); err == nil {
		defer b.peer.rival.close()
	} else if !missing(err) {
		return rep, err
	} else {
		progress("%v", err)
		b.rep.Notes = append(b.rep.Notes, err.Error())
	}
	for i := range size.Rounds {
		progress("round %d of %d", i+1, size.Rounds)
		if err := b.round(ctx); err != nil {
			return rep, err
		}
	}
	b.report()
	return b.rep, nil
}

type reactiveBench struct {
	net        *reactiveNet
	load       *flowLoad
	size       ReactiveSize
	ours, peer contestant
	rep        Report
}

// A contestant is a controller and what its turns gave.
type contestant struct {
	rival    *rival
	p50, p99 []float64 // of each turn, ms
	rate     []float64 // setups per second of each burst
	lost     []float64 // % of each burst
	alone    int       // flows begun one by one that were lost
}

func (b *reactiveBench) round(ctx context.Context) error {
	for _, c := range []*contestant{&b.ours, &b.peer} {
		if c.rival == nil {
			continue
		}
		if err := b.turn(ctx, c); err != nil {
			if c.rival.close(); ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w; it said: %q", c.rival.name, err, tail(c.rival.said.Bytes()))
		}
	}
	return ctx.Err()
}

// turn is one controller's: it gets the switch, empty.
func (b *reactiveBench) turn(ctx context.Context, c *contestant) error {
	if err := b.net.obey(ctx, c.rival.target); err != nil {
		return err
	}
	if err := c.rival.await(ctx); err != nil {
		return err
	}
	start, begun := time.Now(), 0
	run := func(n int, gap time.Duration) ([]landing, error) {
		all, err := b.load.run(ctx, n, gap)
		begun += len(all)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("none of %d new flows came through", n)
		}
		return all, err
	}
	if _, err := run(reactiveWarm, b.size.Gap); err != nil {
		return err
	}
	single, err := run(b.size.Flows, b.size.Gap)
	if err != nil {
		return err
	}
	burst, err := run(b.size.Burst, 0)
	if err != nil {
		return err
	}
	c.add(b.size, single, burst)
	return b.installed(ctx, begun, start)
}

// installed is an error if packets came through without a flow of theirs, while none can have expired.
func (b *reactiveBench) installed(ctx context.Context, begun int, start time.Time) error {
	flows, err := b.net.flows(ctx)
	if err == nil && flows < begun && time.Since(start) < reactiveIdle*time.Second {
		err = fmt.Errorf("%d first packets came through, but the switch has only %d flows", begun, flows)
	}
	return err
}

func (c *contestant) add(size ReactiveSize, single, burst []landing) {
	var took []float64
	for _, a := range single {
		took = append(took, float64(a.came-a.sent)/1e6)
	}
	c.p50, c.p99 = append(c.p50, Quantile(took, 0.5)), append(c.p99, Quantile(took, 0.99))
	c.alone += size.Flows - len(single)
	first, last := burst[0].sent, burst[0].came
	for _, a := range burst {
		first, last = min(first, a.sent), max(last, a.came)
	}
	c.rate = append(c.rate, float64(len(burst))/(last-first).Seconds())
	c.lost = append(c.lost, 100*float64(size.Burst-len(burst))/float64(size.Burst))
}

func (b *reactiveBench) report() {
	o, p := &b.ours, &b.peer
	burst := fmt.Sprintf("burst of %d new flows: ", b.size.Burst)
	b.rep.Rows = []Row{
		NewRow("first packet of a new flow, p50: os-ken / ours", "ratio", ">= 2", osKen, Ratios(p.p50, o.p50)),
		NewRow("first packet of a new flow, p99: os-ken / ours", "ratio", ">= 2", osKen, Ratios(p.p99, o.p99)),
		NewRow(burst+"setups per second, ours / os-ken", "ratio", ">= 2", osKen, Ratios(o.rate, p.rate)),
	}
	for _, c := range []struct {
		who string
		*contestant
	}{{"ours", o}, {"os-ken", p}} {
		if c.rival == nil {
			continue
		}
		b.rep.Rows = append(b.rep.Rows,
			NewRow(c.who+": first packet, p50", "ms", "", "", c.p50),
			NewRow(c.who+": first packet, p99", "ms", "", "", c.p99),
			NewRow(c.who+": "+burst+"setups", "1/s", "", "", c.rate),
			NewRow(c.who+": "+burst+"lost", "%", "", "", c.lost))
		b.rep.Notes = append(b.rep.Notes, fmt.Sprintf("%s lost %d of %d flows that began one by one", c.who, c.alone, b.size.Rounds*b.size.Flows))
	}
	b.rep.Notes = append(b.rep.Notes,
		fmt.Sprintf("%d alternating turns each on one Open vSwitch; a turn: %d flows at %v, then %d at once; N counts turns", b.size.Rounds, b.size.Flows, b.size.Gap, b.size.Burst),
		"both controllers are processes of their own, reached by TCP on loopback, speak OpenFlow 1.3, take the packet apart by hand, and send one flow-mod and one packet-out for each packet-in",
		"a first packet's time is from send() to the far kernel's time stamp; setups per second are those that came through, over the time from the first sent to the last that came")
}
