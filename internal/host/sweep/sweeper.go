package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
)

// How often flows are counted and idle ones removed.
const (
	loadEvery  = time.Second
	sweepEvery = 5 * time.Second
	// restOf keeps the counting of very many flows to a fiftieth of a CPU.
	restOf = 50
)

// A Config is what a sweeper needs of others. Both functions hand over unless the context ends first: who stops a sweeper
// may be the one that takes what it says.
type Config struct {
	Log     *slog.Logger
	Counted func(context.Context, host.Census)
	Full    func(ctx context.Context, text string) // for the network's history
}

// A Sweeper looks after an edge's flows beside the loop: walking a hundred thousand of them takes longer
// than an instance that just died may wait.
type Sweeper struct {
	Config
	edge   *host.Edge
	diag   *sockets.Diag
	mu     sync.Mutex
	guests map[uint16]*sockets.Diag // beside the host's own
	full   uint64                   // packets that found no room, at the last look
	rounds int                      // sweeps so far
	loose  map[host.Silent]bool     // connections without a socket, at the last look
	cancel context.CancelFunc
	done   chan struct{}
}

// Start looks after the edge until Stop. The calling thread must be in the host's namespace.
func Start(edge *host.Edge, cfg Config) (*Sweeper, error) {
	diag, err := sockets.OpenDiag()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Sweeper{Config: cfg, edge: edge, diag: diag, guests: map[uint16]*sockets.Diag{}, cancel: cancel, done: make(chan struct{})}
	go k.run(ctx)
	return k, nil
}

// Watch looks at the datagram sockets of a guest too, by what the sweeper closes.
func (k *Sweeper) Watch(guest uint16, diag *sockets.Diag) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.guests[guest] = diag
}

// Unwatch ends that. Without a sweeper there is nothing to end.
func (k *Sweeper) Unwatch(guest uint16) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if diag := k.guests[guest]; diag != nil {
		diag.Close()
	}
	delete(k.guests, guest)
}

// Stop returns when the sweeper no longer uses the edge; nil is fine.
func (k *Sweeper) Stop() {
	if k != nil {
		k.cancel()
		<-k.done
	}
}

func (k *Sweeper) run(ctx context.Context) {
	defer close(k.done)
	defer k.diag.Close()
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
			k.sweep(ctx)
		}
	}
}

// sweep removes the flows that have ended.
func (k *Sweeper) sweep(ctx context.Context) {
	live, err := k.datagramSockets()
	if err != nil {
		k.Log.Warn("cannot list datagram sockets; their flows go by age", "error", err)
	}
	r, err := k.edge.Sweep(live)
	if err != nil {
		k.Log.Warn("cannot sweep idle flows", "error", err)
		return
	}
	k.complain(ctx, r.Flows)
	if k.rounds++; k.rounds%looseRounds == 0 {
		if err := k.sweepLoose(); err != nil {
			k.Log.Warn("cannot tell which connections have no socket any more", "error", err)
		}
	}
}

// looseRounds is how many sweeps there are for one that looks for connections without a socket.
const looseRounds = 12

// sweepLoose removes the silent connections that have had no socket at two looks: a list of sockets that change while
// it is read may miss one.
func (k *Sweeper) sweepLoose() error {
	silent, err := k.edge.Silent()
	if err != nil || len(silent) == 0 {
		k.loose = nil
		return err
	}
	held, err := k.connections()
	if err != nil {
		return err
	}
	loose := map[host.Silent]bool{}
	var again []host.Silent
	for _, s := range silent {
		if held(s.Tuple) {
			continue
		}
		loose[s] = true
		if k.loose[s] {
			again = append(again, s)
		}
	}
	k.loose = loose
	n, err := k.edge.SweepSilent(again)
	if n > 0 {
		k.Log.Info("connections had no socket any more", "flows", n)
	}
	return err
}

// connections asks which there are, of the host and its guests.
func (k *Sweeper) connections() (func(host.Tuple) bool, error) {
	all := map[host.Tuple]bool{}
	note := func(guest uint16) func(sockets.DiagSocket) {
		return func(s sockets.DiagSocket) {
			all[host.Tuple{Local: s.Local, Remote: s.Peer, Proto: sid.TCP, Guest: guest}] = true
		}
	}
	err := k.diag.Each(sid.TCP, sockets.StateAny, 0, note(0))
	k.mu.Lock()
	defer k.mu.Unlock()
	known := map[uint16]bool{0: true}
	for number, diag := range k.guests {
		known[number] = true
		err = errors.Join(err, diag.Each(sid.TCP, sockets.StateAny, 0, note(number)))
	}
	if err != nil {
		return nil, err
	}
	return func(t host.Tuple) bool { return all[t] || !known[t.Guest] }, nil
}

// datagramSockets asks which there are; nil means that nobody knows.
func (k *Sweeper) datagramSockets() (func(cookie uint64) bool, error) {
	cookies := map[uint64]bool{}
	note := func(s sockets.DiagSocket) { cookies[s.Cookie] = true }
	err := k.diag.Each(sid.UDP, sockets.StateAny, 0, note)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, diag := range k.guests {
		err = errors.Join(err, diag.Each(sid.UDP, sockets.StateAny, 0, note))
	}
	if err != nil {
		return nil, err
	}
	return func(cookie uint64) bool { return cookies[cookie] }, nil
}

// complain says when new flows found no room.
func (k *Sweeper) complain(ctx context.Context, flows int) {
	counters, err := k.edge.Counters()
	if full := counters["drop_full"]; err == nil && full != k.full {
		k.Log.Warn("the flow table is full: first packets are lost until flows end", "flows", flows, "lost", full-k.full)
		k.Full(ctx, fmt.Sprintf("the flow table is full with %d flows: %d first packets were lost; new flows find room when others end", flows, full-k.full))
		k.full = full
	}
}

// count tells how many flows there are and returns when to count again.
func (k *Sweeper) count(ctx context.Context) time.Duration {
	began := time.Now()
	c, err := k.edge.Census()
	if err != nil {
		k.Log.Warn("cannot count flows", "error", err)
		return sweepEvery
	}
	rest := max(loadEvery, restOf*time.Since(began))
	k.Counted(ctx, c)
	return rest
}
