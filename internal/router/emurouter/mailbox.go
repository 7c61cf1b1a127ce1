package emurouter

import (
	"sync"

	"scaffold.dev/scaffold/internal/core/liveness"
)

// An event is one thing that the path found.
type event struct {
	frame   []byte // to the router itself, by the port
	port    int
	carrier bool // the port has one now, or not
	up      bool
	hosts   []liveness.Change
}

// frameMost is how many frames may wait: who sends more to the router itself than it reads is not heard.
const frameMost = 4096

// A mailbox takes what the engine's thread, which must not wait, has for the control.
type mailbox struct {
	filled chan struct{}

	mu     sync.Mutex // held for moments only
	events []event
	frames int
}

func newMailbox() *mailbox { return &mailbox{filled: make(chan struct{}, 1)} }

// put adds an event; false where there are too many frames.
func (m *mailbox) put(e event) bool {
	m.mu.Lock()
	ok := e.frame == nil || m.frames < frameMost
	if ok {
		m.events = append(m.events, e)
		if e.frame != nil {
			m.frames++
		}
	}
	m.mu.Unlock()
	select {
	case m.filled <- struct{}{}:
	default:
	}
	return ok
}

// take returns all that there is.
func (m *mailbox) take() []event {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.events
	m.events, m.frames = nil, 0
	return all
}
