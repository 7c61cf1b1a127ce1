package boost

import (
	"context"
	"errors"
	"net"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// firstAsks is how many pairs of connections ask in a run.
const firstAsks = 20

// longRoundTrip is the round trip of the long path, in ms.
const longRoundTrip = 50

// atOnce is what lanes have for clients that are not to wait for the server.
const atOnce = "accept: at-once"

// firstBytes measures how much later, or sooner, the first byte of an answer is there when the connection is boosted.
func (b *rig) firstBytes(ctx context.Context) error {
	if err := b.loss(ctx, "0%"); err != nil {
		return err
	}
	var all []net.Listener
	defer func() {
		for _, l := range all {
			l.Close()
		}
	}()
	listen := func() error {
		for _, port := range []uint16{ownBoosted, ownPlain} {
			l, err := b.agents.Listen(ctx, port)
			if err != nil {
				return err
			}
			all = append(all, l)
			go agent.AnswerAll(l) // ends with l
		}
		return nil
	}
	if err := listen(); err != nil {
		return err
	}
	const peer = "the same without agents"
	added, err := b.asked(ctx, "first byte")
	if err != nil {
		return err
	}
	b.add(judged("time to first byte, added", "ms", "<= 2", peer, added))
	if err := b.agents.TakeLanes(ctx, atOnce); err != nil {
		b.note("time to first byte with %s is left out: %v", atOnce, err)
		return nil
	}
	for _, l := range all { // agents that start look there whether they carry
		l.Close()
	}
	b.agents.Lanes(atOnce)
	return b.with(ctx, "", func() error {
		defer b.agents.Lanes("") // for the restart after this
		if err := listen(); err != nil {
			return err
		}
		added, err := b.asked(ctx, "first byte, "+atOnce)
		if err != nil {
			return err
		}
		b.add(judged("time to first byte, "+atOnce+", added", "RTT", "<= -0.9", peer,
			each(added, func(ms float64) float64 { return ms / longRoundTrip })))
		for _, l := range all {
			l.Close()
		}
		return nil
	})
}

// asked asks in pairs, one boosted and one not; it is the difference of each pair in ms.
func (b *rig) asked(ctx context.Context, when string) (all []outcome, err error) {
	for run := range b.runs() {
		var ms []float64
		o, err := observed(ctx, b.lab, func() (_ float64, err error) {
			ms, err = b.added(ctx)
			return 0, err
		})
		if err != nil {
			return nil, err
		}
		if o.blame != "" {
			b.note("%s, run %d is not judged: the emulator: %s", when, run+1, o.blame)
		}
		for _, v := range ms {
			all = append(all, outcome{v, o.blame})
		}
	}
	return all, nil
}

func (b *rig) added(ctx context.Context) (ms []float64, err error) {
	for i := range firstAsks {
		var took [2]time.Duration
		for j := range took {
			side := turn(i, j, len(took))
			if took[side], err = b.ask(ctx, []uint16{ownBoosted, ownPlain}[side]); err != nil {
				return nil, err
			}
		}
		ms = append(ms, float64(took[0]-took[1])/1e6)
	}
	return ms, nil
}

// askedAtMost is how long a question may take.
const askedAtMost = 5 * time.Second

// ask connects, asks, and waits for the first byte of the answer.
func (b *rig) ask(ctx context.Context, port uint16) (time.Duration, error) {
	began := time.Now()
	c, err := b.agents.Dial(port)
	if err != nil {
		return 0, errors.Join(ctx.Err(), err)
	}
	defer c.Close()
	err = exchangeByte(c)
	return time.Since(began), errors.Join(ctx.Err(), err)
}

// exchangeByte asks by one byte, and reads one.
func exchangeByte(c net.Conn) error {
	one := []byte{1}
	err := c.SetDeadline(time.Now().Add(askedAtMost))
	if err == nil {
		_, err = c.Write(one)
	}
	if err == nil {
		_, err = c.Read(one)
	}
	return err
}
