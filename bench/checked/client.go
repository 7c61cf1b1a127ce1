package checked

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// A Load is what a client program does: so many flows at a time, each for a while, then the next.
type Load struct {
	Network  string // tcp6, udp6
	To       string
	Flows    int
	Up, Down Rate // of a stream; a udp flow asks every Step
	Step     time.Duration
	Gap      time.Duration    // shortest that is noted
	Life     [2]time.Duration // how long a flow lives, drawn between the two; 0: until the end
	Base     uint64           // flows are numbered from here
	Seed     uint64
}

// Check says what cannot be asked for.
func (l Load) Check() error {
	switch {
	case l.Flows < 1:
		return fmt.Errorf("checked: %d flows: want at least 1", l.Flows)
	case l.Step < 100*time.Microsecond:
		return fmt.Errorf("checked: a step of %v: want at least 100µs", l.Step)
	case l.Life[1] < l.Life[0]:
		return fmt.Errorf("checked: flows that live %v to %v", l.Life[0], l.Life[1])
	}
	return nil
}

// Run is the client until ctx ends; then all flows are ended in peace.
func (l Load) Run(ctx context.Context, log *Log) error {
	if err := l.Check(); err != nil {
		return err
	}
	var flows sync.WaitGroup
	for i := range l.Flows {
		flows.Go(func() { l.one(ctx, uint64(i), log) })
	}
	flows.Wait()
	return nil
}

// retryAfter is how long a client waits before it tries again to connect.
const retryAfter = 20 * time.Millisecond

// one is flow after flow in one place.
func (l Load) one(ctx context.Context, place uint64, log *Log) {
	rng := rand.New(rand.NewPCG(l.Seed, l.Base+place))
	flow := l.stream
	if l.Network == "udp6" {
		flow = l.datagrams
	}
	for n := l.Base + place; ctx.Err() == nil; n += uint64(l.Flows) {
		life, end := ctx, context.CancelFunc(func() {})
		if l.Life[1] > 0 {
			d := l.Life[0] + time.Duration(rng.Int64N(int64(l.Life[1]-l.Life[0])+1))
			life, end = context.WithTimeout(ctx, d)
		}
		err := flow(ctx, life, n, log)
		end()
		if err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// connectTime bounds one connect.
const connectTime = 10 * time.Second

// stream is one connection, from connect to its end in peace when life ends.
func (l Load) stream(ctx, life context.Context, n uint64, log *Log) error {
	h := Hello{Flow: n, Seed: l.Seed ^ n*0x9E3779B97F4A7C15, Up: l.Up, Down: l.Down, Step: l.Step}
	d := net.Dialer{Timeout: connectTime, KeepAlive: -1}
	start := agent.Now()
	c, err := d.DialContext(ctx, l.Network, l.To)
	if err == nil {
		_, err = c.Write(h.Append(nil))
	}
	if ctx.Err() != nil && err != nil {
		return err
	}
	if err != nil {
		log.note(Note{Kind: Refused, At: agent.Now(), From: start, Flow: n, Proto: "tcp", Client: true, Peer: l.To, Err: err.Error()})
		return err
	}
	return newEnd(c.(*net.TCPConn), log, h, true, l.Gap).run(life)
}
