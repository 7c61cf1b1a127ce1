package tcp

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/linux/priority"
)

// A Listener hears what a look at the connections of a guest, 0: of the host itself, has found. It is called in the loop.
type Listener interface {
	Waiting(at time.Time, guest uint16, found []kick.Socket) // that were kicked, and got no acknowledgement before
	Silent(guest uint16, found []kick.Socket)                // that get no acknowledgement
}

// A stack is the kernel's TCP in one namespace. A look at many connections passes over all sockets of the
// machine, so it happens beside the loop, in one goroutine; what is asked for while it runs makes one more look.
// Silent connections are looked for in another one: nobody waits for that.
type stack struct {
	log   *slog.Logger
	post  func(func())
	hear  Listener
	guest uint16       // whose they are; 0: the host's own
	k     *kick.Kicker // nil where there is none
	by    string       // the device by which its packets reach local sockets, "" for any
	busy  *atomic.Bool // there are flows: silent ones are looked for
	move  atomic.Bool  // many of them wait to be moved: choked ones are looked for more often
	rest  time.Duration

	once sync.Once
	wake chan struct{}
	soon chan struct{} // look for choked ones now
	mu   sync.Mutex
	todo wanted
}

// reset ends connections with an error.
func (t *stack) reset(list []kick.Tuple) {
	if len(list) > 0 {
		t.want(func(w *wanted) { w.resets = join(w.resets, list) })
	}
}

// resetThen ends a connection and then calls then in the loop.
func (t *stack) resetThen(which kick.Tuple, then func()) {
	t.want(func(w *wanted) { w.resets, w.after = join(w.resets, []kick.Tuple{which}), append(w.after, then) })
}

// wanted is what the next look does, in this order.
type wanted struct {
	resets kick.Set
	after  []func() // what waited for them
	kicks  kick.Set
	reads  []reading
}

// A reading asks for the state of one connection; then gets it in the loop, nil where there is none.
type reading struct {
	tuple kick.Tuple
	then  func(*kick.Socket)
}

// How often silent connections are looked for, and how much of a CPU that may take: a fiftieth, or as much as it
// takes to find each that the kernel is about to give up (kick.Socket.Choked) in time. Where a host with many flows
// has a link again, all their timers fire at once, into queues for a thousand packets and for many seconds.
const (
	silenceEvery = 100 * time.Millisecond
	silenceRest  = 50
	silenceMost  = 3 * time.Second
	silenceMove  = time.Second // of silenceMost, while flows wait to be moved, or are choked
)

// moving says whether many flows wait to be moved.
func (t *stack) moving(yes bool) {
	if !t.move.Swap(yes) && yes {
		select {
		case t.soon <- struct{}{}:
		default:
		}
	}
}

// probesAtEase is after how many of fifteen tries a choked connection is kicked before others.
const probesAtEase = 5

// mostSilent is how many silent connections the loop hears of from one look: of more, as many by chance, for each
// costs it microseconds, and where thousands are silent something happens to all of them.
const mostSilent = 1024

// sample keeps mostSilent of the n sockets so far, each as likely as the others.
func sample(list []kick.Socket, s *kick.Socket, n int) []kick.Socket {
	if len(list) < mostSilent {
		return append(list, *s)
	}
	if i := rand.IntN(n); i < len(list) {
		list[i] = *s
	}
	return list
}

func newStack(log *slog.Logger, post func(func()), hear Listener) *stack {
	return &stack{log: log, post: post, hear: hear, busy: new(atomic.Bool), rest: silenceEvery, wake: make(chan struct{}, 1), soon: make(chan struct{}, 1)}
}

// start begins once, on a thread in the host's namespace.
func (t *stack) start(ctx context.Context) {
	t.once.Do(func() {
		k, err := kick.Open()
		if err != nil {
			t.log.Error("connections will wait for their own timers after a move", "error", err)
			return
		}
		if k.Lost() != nil {
			t.log.Warn("connections will wait for their own timers after a move", "error", k.Lost())
		}
		t.k = k
		t.begin(ctx)
	})
}

// begin starts what works beside the loop, until ctx ends.
func (t *stack) begin(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { t.run(ctx, t.k) })
	both.Go(func() { t.listen(ctx, t.k) })
	go func() { both.Wait(); t.k.Close() }()
}

func (t *stack) bindTo(device string) {
	if t.k == nil || t.by == device {
		return
	}
	if err := t.k.BindTo(device); err != nil {
		t.log.Error("connections will wait for their own timers after a move", "error", err)
		return
	}
	t.by = device
}

// look reads one connection at once, nil where there is none; not sure where only read can tell.
func (t *stack) look(of kick.Tuple) (c *kick.Socket, sure bool) {
	if t.k == nil {
		return nil, false
	}
	c, sure, err := t.k.Look(of)
	if err != nil {
		t.log.Warn("cannot read a connection", "connection", of, "error", err)
	}
	return c, sure
}

func (t *stack) want(f func(*wanted)) {
	t.mu.Lock()
	f(&t.todo)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// kick makes connections send now what waits for a timer.
func (t *stack) kick(list []kick.Tuple) {
	if len(list) > 0 {
		t.want(func(w *wanted) { w.kicks = join(w.kicks, list) })
	}
}

// read looks at one connection.
func (t *stack) read(of kick.Tuple, then func(*kick.Socket)) {
	t.want(func(w *wanted) { w.reads = append(w.reads, reading{of, then}) })
}

func join(s kick.Set, list []kick.Tuple) kick.Set {
	if s == nil {
		s = make(kick.Set, len(list))
	}
	maps.Copy(s, kick.SetOf(list...))
	return s
}

func (t *stack) run(ctx context.Context, k *kick.Kicker) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
			t.do(k)
		}
	}
}

// listenNice is the priority of the thread that looks: what it is for, the kernel does not wait for, and a host on
// which thousands of timers fire at once has no time for anybody.
const listenNice = -15

// listen looks for connections whose peer is silent.
func (t *stack) listen(ctx context.Context, k *kick.Kicker) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its priority with it
	if err := priority.Thread(listenNice); err != nil {
		t.log.Debug("look for silent connections at the priority of all", "error", err)
	}
	silence := time.NewTimer(t.rest)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-silence.C:
		case <-t.soon:
		}
		silence.Reset(t.silent(k))
	}
}

// do serves what was asked for.
func (t *stack) do(k *kick.Kicker) {
	t.mu.Lock()
	w := t.todo
	t.todo = wanted{}
	t.mu.Unlock()
	if len(w.resets) > 0 {
		if _, err := k.Reset(w.resets); err != nil {
			t.log.Warn("cannot reset connections", "connections", len(w.resets), "error", err)
		}
	}
	for _, f := range w.after {
		t.post(f)
	}
	if len(w.reads) > 0 {
		t.readAll(k, w.reads)
	}
	if len(w.kicks) > 0 {
		t.kickAll(k, w.kicks)
	}
}

func (t *stack) kickAll(k *kick.Kicker, set kick.Set) {
	var stalled []kick.Socket
	_, err := k.KickSeen(set, func(s *kick.Socket) {
		if s.Stalled() > 0 {
			stalled = append(stalled, *s)
		}
	})
	if err != nil {
		t.log.Warn("cannot kick connections", "connections", len(set), "error", err)
	}
	if now := time.Now(); len(stalled) > 0 {
		t.post(func() { t.hear.Waiting(now, t.guest, stalled) })
	}
}

func (t *stack) readAll(k *kick.Kicker, reads []reading) {
	tuples := make([]kick.Tuple, len(reads))
	for i, r := range reads {
		tuples[i] = r.tuple
	}
	all, err := k.State(tuples...)
	if err != nil {
		t.log.Warn("cannot read connections", "connections", len(reads), "error", err)
	}
	found := make(map[kick.Tuple]*kick.Socket, len(all))
	for i := range all {
		found[all[i].Tuple] = &all[i]
	}
	for _, r := range reads { // a pass over sockets that come and go meanwhile, or that ends early, misses some
		if found[r.tuple] == nil {
			if c, sure := t.look(r.tuple); sure {
				found[r.tuple] = c
			}
		}
	}
	t.post(func() {
		for _, r := range reads {
			r.then(found[r.tuple])
		}
	})
}

// silent tells of the connections that get no acknowledgement, kicks those that this host chokes itself, and returns
// when to look again.
func (t *stack) silent(k *kick.Kicker) time.Duration {
	if !t.busy.Load() {
		return t.rest
	}
	began := time.Now()
	var silent []kick.Socket
	urgent, choked, all := kick.Set{}, kick.Set{}, 0
	err := k.Each(func(s *kick.Socket) {
		if s.Backoff > 0 && s.Stalled() > 0 {
			all++
			silent = sample(silent, s, all)
		}
		switch {
		case !s.Choked() || k.Lost() != nil:
		case s.Probes > probesAtEase:
			urgent[s.Tuple] = struct{}{}
		default:
			choked[s.Tuple] = struct{}{}
		}
	})
	if err != nil {
		t.log.Debug("look for silent connections", "error", err)
		return time.Second
	}
	for _, set := range []kick.Set{urgent, choked} { // a kick takes 20 µs
		if len(set) > 0 {
			t.log.Debug("this host's queues are full: connections wait for them", "connections", len(set))
			t.kickAll(k, set)
		}
	}
	if len(silent) > 0 {
		t.post(func() { t.hear.Silent(t.guest, silent) })
	}
	most := silenceMost
	if len(urgent)+len(choked) > 0 || t.move.Load() {
		most = silenceMove
	}
	return max(min(max(silenceEvery, silenceRest*time.Since(began)), most), t.rest)
}
