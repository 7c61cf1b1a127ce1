package controld

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/store"
)

// retrySaving is how long the saver waits after a failure.
const retrySaving = time.Second

// A committer is what the saver needs of the store.
type committer interface {
	Commit(context.Context, ...store.Change) error
}

// A saver makes changes durable in two ways. What an operator orders is saved before it is done:
// now. What hosts and routers do has happened already and cannot be refused for want of a disk:
// later keeps it and tries until it is saved.
type saver struct {
	store committer
	wake  chan struct{}

	mu      sync.Mutex
	pending map[string]store.Change // by key: the last one counts
	saving  int                     // of those, on their way to the store
}

func newSaver(s committer) *saver {
	return &saver{store: s, wake: make(chan struct{}, 1), pending: make(map[string]store.Change)}
}

// now saves and waits. Changes that wait under the same keys are overtaken.
func (s *saver) now(ctx context.Context, changes ...store.Change) error {
	if err := s.store.Commit(ctx, changes...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		delete(s.pending, c.Key())
	}
	return nil
}

// later saves soon and does not wait.
func (s *saver) later(changes ...store.Change) {
	s.mu.Lock()
	for _, c := range changes {
		s.pending[c.Key()] = c
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}

// run saves until ctx ends, and says after each attempt how it went. What waits at the end is tried
// once more.
func (s *saver) run(ctx context.Context, report func(error)) {
	defer func() { _ = s.save(context.WithoutCancel(ctx)) }() // the store bounds the time
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		for err := s.save(ctx); ; err = s.save(ctx) {
			report(err)
			if err == nil {
				break
			}
			select {
			case <-time.After(retrySaving):
			case <-ctx.Done():
				return
			}
		}
	}
}

// save writes what is pending; what fails is pending again unless something newer came meanwhile.
func (s *saver) save(ctx context.Context) error {
	s.mu.Lock()
	batch := s.pending
	s.pending, s.saving = make(map[string]store.Change), len(batch)
	s.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	err := s.store.Commit(ctx, slices.Collect(maps.Values(batch))...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saving = 0
	if err != nil {
		maps.Copy(batch, s.pending)
		s.pending = batch
	}
	return err
}

// waiting is how many records are not saved yet.
func (s *saver) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) + s.saving
}
