package session

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/wire"
)

// All flows of an instance that dies go on at one that takes its time for each, and whose daemon is handed no more
// than so many messages that it has not read. None is given up, and none asks for much more than it needs.
func TestTheFlowsOfAnInstanceDoNotStarveEachOther(t *testing.T) {
	const (
		flows  = 5000
		unread = 600                    // messages
		takes  = 400 * time.Microsecond // for one
	)
	w, _ := newFailover(t)
	a, dead, b := w.hosts[0], w.hosts[1], w.hosts[2]
	w.hosts[3].SetCapable(web, false)
	for range flows {
		w.connect(a, dead, Flow{Service: web, Continue: true})
	}
	for _, h := range w.hosts {
		h.cfg.Times = DefaultTimes
		h.cfg.Trust = unchecked{} // what signatures cost is in the time
	}
	a.Lost(w.now, wire.HostGone, func(Flow) bool { return true })
	w.collect(a)
	w.read(a)
	asked, dropped, queue := 0, 0, []datagram{}
	end := w.now.Add(60 * time.Second)
	for free := w.now; w.now.Before(end) && (stillSeeking(a) || len(queue) > 0); {
		for len(w.pool) > 0 {
			d := w.pool[0]
			w.pool = w.pool[1:]
			switch h := w.route(&d); {
			case h == a:
				w.deliver(d)
			case h != b:
			case len(queue) == unread:
				asked, dropped = asked+1, dropped+1
			default:
				asked++
				queue = append(queue, d)
			}
		}
		for ; len(queue) > 0 && !free.After(w.now); free = free.Add(takes) {
			m, _ := wire.Parse(queue[0].bytes)
			b.Handle(w.now, queue[0].from, queue[0].to, m)
			queue = queue[1:]
			w.collect(b)
		}
		if len(queue) == 0 {
			free = w.now
		}
		w.now = w.now.Add(time.Millisecond)
		a.Expire(w.now)
		w.collect(a)
	}
	if len(a.resets) > 0 || stillSeeking(a) {
		t.Errorf("%d flows were given up; some look for an instance yet: %v", len(a.resets), stillSeeking(a))
	}
	if most := 4 * flows; asked > most {
		t.Errorf("%d messages for %d flows, of which %d found no room; at most %d are wanted", asked, flows, dropped, most)
	}
	t.Logf("%d flows: %d messages, %d found no room, %v", flows, asked, dropped, w.now.Sub(end.Add(-60*time.Second)))
}

func stillSeeking(h *host) bool {
	for _, f := range h.flows {
		if f.state == Asking || f.state == Confirming {
			return true
		}
	}
	return false
}
