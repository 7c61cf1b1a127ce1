package controld

import (
	"strconv"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// remembered is how many events are kept for those who ask later.
const remembered = 4096

// watcherQueue is how far a follower may lag behind before its stream is ended.
const watcherQueue = 1024

// A history is a ring of events and those who follow it. The loop owns it.
type history struct {
	ring     []*apiv1.Event
	seq      uint64
	watchers map[*session[apiv1.Event]]struct{}
}

func newHistory() *history {
	return &history{watchers: make(map[*session[apiv1.Event]]struct{})}
}

func (h *history) add(e *apiv1.Event) {
	h.seq++
	e.Seq = h.seq
	if len(h.ring) < remembered {
		h.ring = append(h.ring, e)
	} else {
		h.ring[(h.seq-1)%remembered] = e
	}
	for w := range h.watchers {
		if !w.send(e) {
			delete(h.watchers, w)
		}
	}
}

// last returns up to count events, oldest first.
func (h *history) last(count int) []*apiv1.Event {
	count = min(count, len(h.ring))
	list := make([]*apiv1.Event, 0, count)
	for seq := h.seq - uint64(count) + 1; seq <= h.seq; seq++ {
		list = append(list, h.ring[(seq-1)%remembered])
	}
	return list
}

// event tells everybody what happened, in one line. attrs are pairs.
func (n *network) event(kind, subject, text string, attrs ...string) {
	e := &apiv1.Event{UnixMs: time.Now().UnixMilli(), Kind: kind, Subject: subject, Text: text}
	if len(attrs) > 0 {
		e.Attrs = make(map[string]string, len(attrs)/2)
	}
	for i := 0; i+1 < len(attrs); i += 2 {
		e.Attrs[attrs[i]] = attrs[i+1]
	}
	n.events.add(e)
	n.metrics.events.Inc(kind)
	args := []any{"kind", kind, "subject", subject}
	for _, a := range attrs {
		args = append(args, a)
	}
	n.log.Info(text, args...)
}

func uitoa[T ~uint8 | ~uint16 | ~uint32 | ~uint64](v T) string {
	return strconv.FormatUint(uint64(v), 10)
}

// because joins what happened and why; reasons from outside are kept to one printable line.
func because(text, reason string) string {
	if reason == "" {
		return text
	}
	const most = 200
	if len(reason) > most {
		reason = reason[:most] + "..."
	}
	return text + ": " + printable(reason)
}

// printable shows what is not as Go does.
func printable(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
