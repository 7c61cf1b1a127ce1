package emu

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A worker is one thread with some of the links.
type worker struct {
	base    time.Time
	arena   *arena
	spare   uint32 // large slot to read into
	flows   []*flow
	poll    poller
	pace    pace
	head    [maxHead]byte // of a part that is cut out of a train
	iov     [2]unix.Iovec
	asked   chan func(*worker)
	gone    chan struct{} // closed when the thread has ended
	started bool
	stop    bool
}

// A flow is one direction of a link.
type flow struct {
	line    *Line
	in, out *tap
	late    Lateness
	refused uint64
	starved uint64
}

func newWorker() (*worker, error) {
	a, err := newArena()
	if err != nil {
		return nil, err
	}
	w := &worker{base: time.Now(), arena: a, asked: make(chan func(*worker), 16), gone: make(chan struct{})}
	w.spare, _ = a.take(1)
	if err := w.poll.open(); err != nil {
		return nil, errors.Join(err, unix.Munmap(a.memory))
	}
	return w, nil
}

// add makes the interfaces of a link. The worker does not run yet.
func (w *worker) add(l LinkConfig) error {
	a, err := openTap(l.Ends[0])
	if err != nil {
		return err
	}
	b, err := openTap(l.Ends[1])
	if err != nil {
		a.close()
		return err
	}
	there := &flow{line: NewLine(l.Params[0]), in: a, out: b}
	back := &flow{line: NewLine(l.Params[1]), in: b, out: a}
	for _, f := range []*flow{there, back} {
		w.flows = append(w.flows, f)
		if err := w.poll.watch(f.in.fd, len(w.flows)-1); err != nil {
			return fmt.Errorf("interface %s: wait for frames: %w", f.in.dev, err)
		}
	}
	return nil
}

// pair is both directions of the i-th link of this worker.
func (w *worker) pair(i int) []*flow { return w.flows[2*i : 2*i+2] }

// ErrClosed is returned by the methods of an engine that was closed.
var ErrClosed = errors.New("the engine is closed")

// ask has the worker's thread call f, and returns afterwards.
func (w *worker) ask(f func(*worker)) error {
	done := make(chan struct{})
	select {
	case w.asked <- func(w *worker) { f(w); close(done) }:
	case <-w.gone:
		return ErrClosed
	}
	w.poll.wake()
	select {
	case <-done:
		return nil
	case <-w.gone:
		return ErrClosed
	}
}

// answer calls what was asked for.
func (w *worker) answer() {
	for {
		select {
		case f := <-w.asked:
			f(w)
		default:
			return
		}
	}
}

func (w *worker) close() {
	if w.started {
		if w.ask(func(w *worker) { w.stop = true }) != nil {
			return // closed before
		}
		<-w.gone
	}
	for i, f := range w.flows {
		if i%2 == 0 {
			f.in.close()
			f.out.close()
		}
	}
	w.poll.close()
	w.arena.close()
	w.flows = nil
}

// now is the time of the lines.
func (w *worker) now() time.Duration { return time.Since(w.base) }

func (f *flow) stats(w *worker) LineStats {
	return LineStats{
		Params: f.line.Params(), Counters: f.line.Counters(), Refused: f.refused, Starved: f.starved,
		Late: f.late.stats(), Realtime: w.pace.realtime, Busy: w.pace.busy,
	}
}
