package naming

import (
	"context"
	"errors"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// knownAfter is for how long a question may be with the controller before what is known of it is the answer, whatever its
// age (RFC 8767 calls this serving stale data). A controller that has gone says so at once only where somebody is left to
// say it: behind OpenFlow switches the connection is with the controller itself, and a question is silence.
const knownAfter = 50 * time.Millisecond

// An awaited answer is the controller's to a question that it is asked now, for all who want to know.
type awaited struct {
	since  time.Time
	done   chan struct{}
	answer Name
	err    error
}

// asked gives the question that is with the controller, and puts it where none is. It ends with its own limit, not
// with who asks, so that an answer that comes late is known the next time.
func (n *Names) asked(text string, req *apiv1.ResolveRequest) *awaited {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.awaited[text]; a != nil {
		return a
	}
	a := &awaited{since: time.Now(), done: make(chan struct{})}
	n.awaited[text] = a
	go func() { // ends with resolveLimit, or the daemon
		a.answer, a.err = n.Ask(n.ctx, req)
		if a.err == nil || errors.Is(a.err, ErrUnknown) {
			n.keep(text, a.answer)
		}
		n.mu.Lock()
		delete(n.awaited, text)
		n.mu.Unlock()
		close(a.done)
	}()
	return a
}

// wait waits for the answer; where one is known already, not for a controller that keeps silent.
func (a *awaited) wait(ctx context.Context, known bool) (Name, error) {
	var late <-chan time.Time
	if known {
		late = time.After(time.Until(a.since.Add(knownAfter)))
	}
	select {
	case <-a.done:
		return a.answer, a.err
	case <-late:
		return Name{}, errSilent
	case <-ctx.Done():
		return Name{}, ctx.Err()
	}
}

var errSilent = errors.New("the controller has not answered yet")
