package chaos

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// A Happening is an event that was carried out, or could not be.
type Happening struct {
	Event
	Batch        int
	Began, Ended int64 // CLOCK_MONOTONIC, ns
	Until        int64 // when all hosts and servers were in service again
	Err          string
}

// Resets names the host whose connections may end by this, "" for none: its process dies, it is shed, or
// its link is lost while others serve the same.
func (h Happening) Resets() string {
	words := strings.Fields(h.Do)
	switch words[0] {
	case "crash", "shed", "unplug", "cut":
		return words[1]
	}
	return ""
}

// excuses until when the event explains things.
func (h Happening) excuses() int64 { return max(h.Ended, h.Until) + excuse }

// Verb is the event's first word.
func (h Happening) Verb() string {
	verb, _, _ := strings.Cut(h.Do, " ")
	return verb
}

// service is what the checked servers serve. What one of them serves alone has nowhere else to go: it
// survives all but its process.
const (
	service     = "check"
	soloService = "solo"
)

// A stage is a lab under chaos.
type stage struct {
	rig     *bench.Rig
	ledger  *bench.Ledger
	world   World
	target  string // of the service
	solo    string // of the one that one host serves alone
	servers map[string]*bench.Program
	clients []*bench.Program
	errands errandsRun
}

// act carries out one event.
func (s *stage) act(ctx context.Context, do string) error {
	words := strings.Fields(do)
	verb, node := words[0], words[1]
	switch verb {
	case "crash":
		return s.servers[node].Kill()
	case "serve":
		return s.serve(ctx, node)
	case "freeze":
		return s.servers[node].Signal(syscall.SIGSTOP)
	case "thaw":
		return s.servers[node].Signal(syscall.SIGCONT)
	case "wait-drain":
		return s.rig.Drain(ctx, service, node, "wait")
	case "shed":
		return s.rig.Drain(ctx, service, node, "shed")
	case "undrain":
		return s.rig.Act(ctx, "undrain %s %s", service, node)
	case "weigh":
		return s.rig.Act(ctx, "weight %s %s %s", service, node, words[2])
	case "attached":
		return s.rig.AwaitAttached(ctx, node, words[2])
	case "shift":
		_, err := s.rig.Shift(ctx, node, words[2], words[3]) // what cannot move now does when its link goes
		return err
	case "end":
		return s.end(ctx, node)
	}
	return s.rig.Act(ctx, "%s", do)
}

// happen carries out an event and notes how it went.
func (s *stage) happen(ctx context.Context, batch int, e Event) Happening {
	h := Happening{Event: e, Batch: batch, Began: agent.Now()}
	if err := s.act(ctx, e.Do); err != nil {
		h.Err = err.Error()
	}
	h.Ended = agent.Now()
	return h
}

// gap is the shortest standstill that servers and clients note.
const gap = 20 * time.Millisecond

func (s *stage) serve(ctx context.Context, node string) (err error) {
	s.servers[node], err = s.ledger.Serve(ctx, s.rig, node, s.target, gap)
	return err
}

// endTime bounds how long a daemon may take to end in good order.
const endTime = 10 * time.Second

// end asks a daemon, NODE/DAEMON, to end and waits until it has.
func (s *stage) end(ctx context.Context, who string) error {
	if err := s.rig.Act(ctx, "kill %s TERM", who); err != nil {
		return err
	}
	node, daemon, _ := strings.Cut(who, "/")
	for deadline := time.Now().Add(endTime); ; time.Sleep(2 * time.Millisecond) {
		if len(cgroups.Group(s.rig.Cgroup(node, daemon)).PIDs()) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not end in %v after SIGTERM", who, endTime)
		}
	}
}
