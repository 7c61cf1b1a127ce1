package hostd

import (
	"context"
	"log/slog"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
)

// How often flows are counted and idle ones removed.
const (
	loadEvery  = time.Second
	sweepEvery = 5 * time.Second
	// restOf keeps the counting of very many flows to a fiftieth of a CPU.
	restOf = 50
)

// A keeper looks after an edge's flows beside the loop: walking a hundred thousand of them takes longer
// than an instance that just died may wait.
type keeper struct {
	edge   *host.Edge
	log    *slog.Logger
	tell   func(context.Context, host.Census) // hands over a count, unless the context ends first
	cancel context.CancelFunc
	done   chan struct{}
}

// keep starts a keeper for the edge.
func (d *daemon) keep(edge *host.Edge) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{edge: edge, log: d.log, cancel: cancel, done: make(chan struct{})}
	k.tell = func(ctx context.Context, c host.Census) {
		select {
		case d.inbox <- func() { d.reportLoad(c) }:
		case <-ctx.Done():
		}
	}
	go k.run(ctx)
	return k
}

// stop returns when the keeper no longer uses the edge.
func (k *keeper) stop() {
	if k != nil {
		k.cancel()
		<-k.done
	}
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	load, sweep := time.NewTimer(0), time.NewTicker(sweepEvery)
	defer load.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-load.C:
			load.Reset(k.count(ctx))
		case <-sweep.C:
			if _, err := k.edge.Sweep(); err != nil {
				k.log.Warn("cannot sweep idle flows", "error", err)
			}
		}
	}
}

// count tells how many flows there are and returns when to count again.
func (k *keeper) count(ctx context.Context) time.Duration {
	began := time.Now()
	c, err := k.edge.Census()
	if err != nil {
		k.log.Warn("cannot count flows", "error", err)
		return sweepEvery
	}
	rest := max(loadEvery, restOf*time.Since(began))
	k.tell(ctx, c)
	return rest
}
