package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// variable tells a process that it is a worker, and which descriptor its keeper is at.
const variable = "SCAFFOLD_KEEPER"

// beatEvery is how often a worker says that it lives.
const beatEvery = 200 * time.Millisecond

// unanswered is how many beats a keeper may leave without an answer, 10 s: a machine without a free processor is no reason
// to end connections. Beats are counted, not time: a machine that was suspended has not been silent.
const unanswered = 50

// ErrGone says that the keeper has ended, or stands still.
var ErrGone = errors.New("the process that keeps this worker is gone or does not answer: all connections end")

// errEnd is why a worker ends that is told to.
var errEnd = errors.New("the keeper ends")

// A Found is what a worker before this one has left.
type Found struct {
	Key   string
	Value []byte
	FDs   []int // of this process; whoever takes the entry closes them
}

// A Store is a worker's side of its keeper. Its methods may be called by any goroutine.
type Store struct {
	wire  wire
	found []Found
	ctx   context.Context
	stop  context.CancelCauseFunc
	all   sync.WaitGroup

	most int // beats may go without an answer

	mu     sync.Mutex
	silent int // beats that have
}

// IsWorker reports whether this process is a worker.
func IsWorker() bool { return os.Getenv(variable) != "" }

// Join takes up what the keeper holds. The context that Context returns ends when the keeper says so, is gone, or ctx ends.
func Join(ctx context.Context) (*Store, error) {
	fd, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return nil, fmt.Errorf("%s=%q: it is set by a keeper alone, to the number of a descriptor", variable, os.Getenv(variable))
	}
	os.Unsetenv(variable) // what this process starts is no worker
	// The kernel calls it "exe", as the path by which it was started; people look for its program's name.
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
	unix.CloseOnExec(fd)
	return join(ctx, fd, unanswered)
}

func join(ctx context.Context, fd, unanswered int) (*Store, error) {
	w, err := wireOf(fd)
	if err != nil {
		return nil, err
	}
	s := &Store{wire: w, most: unanswered}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	if err := s.takeUp(); err != nil {
		w.Close()
		return nil, err
	}
	s.all.Go(s.listen)
	s.all.Go(s.beat)
	return s, nil
}

func (s *Store) takeUp() error {
	b := make([]byte, longest)
	for {
		m, err := s.wire.hear(b)
		switch {
		case err != nil && !errors.Is(err, errLost):
			return fmt.Errorf("what the worker before has left: %w", err)
		case m.Do == begin:
			return nil
		case m.Do == end:
			s.stop(errEnd) // the worker takes up what there is, and ends it in order
		case m.Do == found: // without its descriptors, perhaps: whoever looks for it lets it go
			s.found = append(s.found, Found{m.Key, m.Value, m.fds})
		}
	}
}

// Found is what a worker before this one has left, in the order in which it came.
func (s *Store) Found() []Found { return s.found }

// Context ends when the worker has to; its cause is ErrGone where nobody has said so.
func (s *Store) Context() context.Context { return s.ctx }

// Hold has the keeper hold descriptors, of which it gets its own, and a few words, at most 32 KiB.
func (s *Store) Hold(key string, value []byte, fds ...int) error {
	return s.tell(message{Do: hold, Key: key, Value: value, fds: fds})
}

// Note replaces the words of what is held.
func (s *Store) Note(key string, value []byte) error {
	return s.tell(message{Do: note, Key: key, Value: value})
}

// Release has the keeper close what it holds.
func (s *Store) Release(key string) error { return s.tell(message{Do: release, Key: key}) }

// Ready says that the worker does its work.
func (s *Store) Ready() error { return s.tell(message{Do: ready}) }

// Failed says why the worker ends.
func (s *Store) Failed(why error) { _ = s.tell(message{Do: failed, Value: []byte(why.Error())}) }

func (s *Store) tell(m message) error {
	_ = s.wire.SetWriteDeadline(time.Now().Add(time.Duration(s.most) * beatEvery))
	if err := s.wire.say(m); err != nil {
		return fmt.Errorf("%s %s at the keeper: %w", m.Do, m.Key, err)
	}
	return nil
}

// Close lets go of the keeper, which learns of it by the end of the process.
func (s *Store) Close() error {
	s.stop(context.Canceled)
	err := s.wire.Close()
	s.all.Wait()
	return err
}

// listen notes the keeper's answers until it ends.
func (s *Store) listen() {
	b := make([]byte, longest)
	for {
		m, err := s.wire.hear(b)
		if err != nil {
			s.stop(ErrGone)
			return
		}
		s.mu.Lock()
		s.silent = 0
		s.mu.Unlock()
		if m.Do == end {
			s.stop(errEnd)
			return
		}
	}
}

// beat says that this worker lives, as long as the keeper answers. A keeper that stands still would have Hold wait for
// it forever: its end closes the socket.
func (s *Store) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		s.silent++
		gone := s.silent > s.most
		s.mu.Unlock()
		if gone {
			s.stop(ErrGone)
			s.wire.Close()
			return
		}
		if s.tell(message{Do: beat}) != nil && s.ctx.Err() == nil {
			s.stop(ErrGone)
			return
		}
	}
}
