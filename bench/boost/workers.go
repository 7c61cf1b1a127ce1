package boost

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/bench"
)

const (
	// killedEach is the time between two deaths of workers: a window grows again in it.
	killedEach = 3 * time.Second
	// deaths are of each agent's workers, in a run.
	deaths = 2
)

// workers measures for how long nothing arrives of a boosted connection when a worker is killed, at the agent of its
// client and at that of its server in turns.
func (b *rig) workers(ctx context.Context) error {
	if err := b.loss(ctx, lossOfMost); err != nil {
		return err
	}
	f, err := b.steady(ctx)
	if err != nil {
		return err
	}
	defer f.close()
	if err := bench.Pause(ctx, settle); err != nil {
		return err
	}
	sides := []*contender{{name: "client", run: b.death(f, "x")}, {name: "server", run: b.death(f, "y")}}
	for range deaths {
		if err := b.turns(ctx, "a worker is killed", sides...); err != nil {
			return err
		}
	}
	for _, s := range sides {
		b.add(judged("boosted: standstill when the worker at the "+s.name+"'s agent is killed", "ms", "<= 300", "", s.all))
	}
	return nil
}

// death kills the worker of an agent; it is for how many ms the connection then stands still.
func (b *rig) death(f *steady, agent string) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		f.longest.Store(0)
		if err := b.agents.KillWorker(agent); err != nil {
			return 0, err
		}
		if err := bench.Pause(ctx, killedEach); err != nil {
			return 0, err
		}
		return float64(f.longest.Load()) / 1e6, f.failed()
	}
}

// A steady is a connection that is written to all the time.
type steady struct {
	client, server net.Conn
	longest        atomic.Int64 // ns between two reads
	mu             sync.Mutex
	err            error
	all            sync.WaitGroup
}

// steady begins one from the client to the server.
func (b *rig) steady(ctx context.Context) (*steady, error) {
	l, err := b.agents.Listen(ctx, ownBoosted)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	f := &steady{}
	if f.client, err = b.agents.Dial(ownBoosted); err == nil {
		f.server, err = l.Accept()
	}
	if err != nil {
		return nil, err
	}
	f.all.Go(f.write)
	f.all.Go(f.read)
	return f, nil
}

func (f *steady) write() {
	b := make([]byte, 256<<10)
	for {
		if _, err := f.client.Write(b); err != nil {
			f.fail(err)
			return
		}
	}
}

func (f *steady) read() {
	b := make([]byte, 256<<10)
	for last := time.Now(); ; {
		_, err := f.server.Read(b)
		if err != nil {
			f.fail(err)
			return
		}
		now := time.Now()
		if gap := now.Sub(last); gap > time.Duration(f.longest.Load()) {
			f.longest.Store(int64(gap))
		}
		last = now
	}
}

func (f *steady) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *steady) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *steady) close() {
	f.client.Close()
	f.server.Close()
	f.all.Wait()
}
