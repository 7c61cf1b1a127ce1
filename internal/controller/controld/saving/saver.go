// Package saving makes what changed durable: at once, or soon and for as long as it takes.
package saving

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
)

// retrySaving is how long the saver waits after a failure.
const retrySaving = time.Second

// A Committer is what a Saver needs of the store.
type Committer interface {
	Commit(context.Context, ...store.Change) error
	Probe(context.Context) error
}

// A Saver makes changes durable in two ways. What an operator orders is saved before it is done:
// Now. What hosts and routers do has happened already and cannot be refused for want of a disk:
// Later keeps it and tries until it is saved.
type Saver struct {
	store Committer
	wake  chan struct{}

	mu      sync.Mutex
	pending map[string]store.Change // by key: the last one counts
	saving  int                     // of those, on their way to the store
	doubted bool                    // a write failed, and none has been saved since
}

// New makes one that saves in a store.
func New(s Committer) *Saver {
	return &Saver{store: s, wake: make(chan struct{}, 1), pending: make(map[string]store.Change)}
}

// Now saves and waits. Changes that wait under the same keys are overtaken.
func (s *Saver) Now(ctx context.Context, changes ...store.Change) error {
	if err := s.store.Commit(ctx, changes...); err != nil {
		s.doubt()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		delete(s.pending, c.Key())
	}
	return nil
}

// doubt has run try whether writing works, until it does: nobody else may write anything for days, and what stands
// against the controller's health would stand as long.
func (s *Saver) doubt() {
	s.mu.Lock()
	s.doubted = true
	s.mu.Unlock()
	s.rouse()
}

func (s *Saver) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}

// Later saves soon and does not wait.
func (s *Saver) Later(changes ...store.Change) {
	s.mu.Lock()
	for _, c := range changes {
		s.pending[c.Key()] = c
	}
	s.mu.Unlock()
	s.rouse()
}

// Run saves until ctx ends, and says after each attempt how it went. What waits at the end is tried
// once more.
func (s *Saver) Run(ctx context.Context, report func(error)) {
	defer func() { _ = s.Save(context.WithoutCancel(ctx)) }() // the store bounds the time
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		for err := s.Save(ctx); ; err = s.Save(ctx) {
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

// Save writes what is pending, or tries whether it could; what fails is pending again unless something newer came meanwhile.
func (s *Saver) Save(ctx context.Context) error {
	s.mu.Lock()
	batch, doubted := s.pending, s.doubted
	s.pending, s.saving = make(map[string]store.Change), len(batch)
	s.mu.Unlock()
	var err error
	switch {
	case len(batch) > 0:
		err = s.store.Commit(ctx, slices.Collect(maps.Values(batch))...)
	case doubted:
		err = s.store.Probe(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saving = 0
	if s.doubted = err != nil; err != nil {
		maps.Copy(batch, s.pending)
		s.pending = batch
	}
	return err
}

// Waiting is how many records are not saved yet.
func (s *Saver) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) + s.saving
}
