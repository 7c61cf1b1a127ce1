package mobility

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/history"
	"scaffold.dev/scaffold/sid"
)

// How often a timer has doubled before the peer is asked whether it is there. A server asks for about a minute: to
// hear when the way is open again, since there is nobody else to turn to. Then it waits as TCP does.
const (
	suspectAfter = 2
	serverUntil  = 8
)

// stallLimit is the least stall that is remembered.
const stallLimit = 10 * time.Millisecond

// A watch is whom the kernel's TCP tells of connections that wait.
type watch struct {
	*flows
	moves  *moves
	places Places
	meter  Meter
}

// Silent hears which connections get no acknowledgement. While this host itself has no link, or its flows are on
// their way to another one, that is no wonder.
func (s *watch) Silent(guest uint16, list []kick.Socket) {
	if _, linked := s.places.Preferred(); s.engine == nil || !linked || len(s.moves.departures) > 0 {
		return
	}
	now := time.Now()
	for i := range list {
		if k, ok := s.find(tupleOf(guest, &list[i])); ok {
			s.stalled(now, k, &list[i])
			if n := list[i].Backoff; n >= suspectAfter && (k.Role == session.Client || n < serverUntil) {
				s.engine.Suspect(now, k)
			}
		}
	}
}

// Waiting hears which connections a kick found waiting.
func (s *watch) Waiting(now time.Time, guest uint16, list []kick.Socket) {
	for i := range list {
		if k, ok := s.byTuple[tupleOf(guest, &list[i])]; ok {
			s.history.Add(k, history.Event{At: now, Kind: "kick", Stall: list[i].Stalled(),
				Text: fmt.Sprintf("%d bytes in flight and %d queued, timer doubled %d times: sent again at once", list[i].InFlight(), list[i].Queued(), list[i].Backoff)})
		}
	}
}

// stalled notes a stall where nothing moved; while it lasts, its event grows.
func (s *watch) stalled(now time.Time, k session.Key, c *kick.Socket) {
	if c.Stalled() < stallLimit {
		return
	}
	another := s.history.Lengthen(k, history.Event{At: now, Kind: "stall", Stall: c.Stalled(),
		Text: fmt.Sprintf("no acknowledgement for %d bytes; timer doubled %d times", c.InFlight(), c.Backoff)})
	if another {
		s.meter.Count("stalled", 1)
	}
}

func tupleOf(guest uint16, c *kick.Socket) host.Tuple {
	return host.Tuple{Local: c.Local, Remote: c.Peer, Proto: sid.TCP, Guest: guest}
}
