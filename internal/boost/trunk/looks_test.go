package trunk

import (
	"fmt"
	"testing"

	"scaffold.dev/scaffold/internal/core/tune"
)

// waits waits until the one session of a trunk waits for something.
func (r *rig) waits(t *Trunk, of func(s *Session) tune.Look, want tune.Look) {
	r.t.Helper()
	last := tune.Unknown
	until(r.t, func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, s := range t.sessions {
			last = of(s)
		}
		if last != want {
			return fmt.Errorf("it waits for %v, not %v", last, want)
		}
		return nil
	})
}

func reads(s *Session) tune.Look {
	l, _ := s.reading()
	return l
}

func TestASessionKnowsWhatItWaitsFor(t *testing.T) {
	r := newRig(t, 1)
	client, server := r.dial()
	defer client.Close()
	defer server.Close()
	r.waits(r.near, reads, tune.Host)
	r.waits(r.far, (*Session).writing, tune.Free)
	go func() { // until the connection ends
		for b := make([]byte, 1<<20); ; {
			if _, err := client.Write(b); err != nil {
				return
			}
		}
	}()
	r.waits(r.far, (*Session).writing, tune.Host) // the server reads nothing
	r.waits(r.near, reads, tune.Credit)
	client.SetLinger(0)
}

// Bytes that no connection takes wait for the path.
func TestWithoutAConnectionAllWaitForThePath(t *testing.T) {
	r := newRig(t, 1)
	client, server := r.dial()
	defer client.Close()
	defer server.Close()
	for number := range r.live {
		r.cut(number)
	}
	if _, err := fmt.Fprint(client, "hello"); err != nil {
		t.Fatal(err)
	}
	r.waits(r.near, reads, tune.Path)
}
