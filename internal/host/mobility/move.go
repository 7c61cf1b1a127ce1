package mobility

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// moves are those of the host's flows to other locators of the host.
type moves struct {
	*flows
	reports *reports
	places  Places
	crowd   func() uint32

	journeys   []*journey
	departures []*session.Departure // the first is under way
	orphans    bool                 // flows from before this daemon were not looked for yet
}

func (s *moves) renew() { s.journeys, s.departures, s.orphans = nil, nil, true }

// Moved renegotiates what stands at a locator that is lost or given up. The uplink of the other is ready to send.
func (s *moves) Moved(from, to sid.Locator) {
	s.Hush(from)
	keys := s.enterAll(func(f host.Flow) bool { return f.Locator == from })
	now := time.Now()
	s.begin(now, from, to, keys)
	for _, d := range s.departures {
		d.Reroute(from, to)
	}
	s.departures = append(s.departures, s.engine.Depart(from, to))
}

// multitude is how many flows of a host are so many that, all trying at once, they would be in each other's way.
const multitude = 8 * atOnce

// Hush keeps back what the connections of a locator send that is lost, where they are very many, until they have moved:
// each would try again and again, into queues that are full, and leave its host no time to move them.
func (s *moves) Hush(l sid.Locator) {
	if s.engine != nil && s.crowd() >= multitude {
		s.keepBack(l, true)
	}
}

func (s *moves) keepBack(l sid.Locator, yes bool) {
	if err := s.edge.Quiet(l, yes); err != nil {
		s.log.Warn("connections that move may be in each other's way", "locator", l, "error", err)
	}
}

// atOnce is how many flows go through the loop together: enough that system calls are shared, and so few that
// both ends of a great move are at work at the same time.
const atOnce = 512

// depart moves the next flows of what has begun to move.
func (s *moves) depart(now time.Time) {
	if len(s.departures) > 0 && !s.engine.Advance(now, s.departures[0], atOnce) {
		s.departures = s.departures[1:]
	}
}

// Back renegotiates in place: what was sent while the link was down is lost, at both ends, and the peer's
// timers have backed off, too.
func (s *moves) Back(l sid.Locator) { s.Moved(l, l) }

// MoveFlows renegotiates the flows that want asks for over to a locator.
func (s *moves) MoveFlows(to sid.Locator, want func(host.Flow) bool) (moved, failed int) {
	now, all := time.Now(), 0
	keys := s.enterAll(func(f host.Flow) bool {
		ok := f.Locator != to && want(f)
		if ok {
			all++
		}
		return ok
	})
	s.begin(now, 0, to, keys)
	for _, k := range keys {
		s.engine.MoveFlow(now, k, to)
	}
	return len(keys), all - len(keys)
}

// A journey is a move of many flows at once: until the last of them is renegotiated.
type journey struct {
	from, to sid.Locator
	began    time.Time
	flows    int
	left     map[session.Key]bool
}

// crowded says whether connections that wait to be moved may be in each other's way: many of them, and not kept back.
func (j *journey) crowded() bool {
	return len(j.left) > atOnce && (j.flows < multitude || j.from == j.to)
}

// journeyLimit is when the event of a move is told whatever became of it.
const journeyLimit = 30 * time.Second

func (s *moves) begin(now time.Time, from, to sid.Locator, keys []session.Key) {
	if len(keys) == 0 {
		s.keepBack(from, false)
		return
	}
	j := &journey{from: from, to: to, began: now, flows: len(keys), left: make(map[session.Key]bool, len(keys))}
	for _, k := range keys {
		j.left[k] = true
		s.tell(now, k, "move", "to "+to.String())
	}
	s.journeys = append(s.journeys, j)
}

// arrive tells the controller of the moves that are over.
func (s *moves) arrive(now time.Time) {
	if len(s.departures) > 0 {
		return
	}
	list := s.journeys[:0]
	for _, j := range s.journeys {
		for k := range j.left {
			if v, ok := s.engine.View(k); ok && v.State != session.Bound && v.State != session.Connecting {
				break // one is enough to wait for
			}
			delete(j.left, k)
		}
		if len(j.left) > 0 && now.Sub(j.began) < journeyLimit {
			list = append(list, j)
			continue
		}
		s.reportMove(now, j)
		s.keepBack(j.from, false)
	}
	s.journeys = list
}

// findOrphans moves, once after a start, what stands where this host is no more: it went from there while no
// daemon saw it.
func (s *moves) findOrphans() {
	to, linked := s.places.Preferred()
	if !s.orphans || !linked {
		return
	}
	s.orphans = false
	left := map[sid.Locator]bool{}
	err := s.edge.Walk(func(f host.Flow) bool {
		if !stale(f) && f.Locator != 0 && !s.places.Has(f.Locator) {
			left[f.Locator] = true
		}
		return true
	})
	if err != nil {
		s.log.Error("cannot list the flows", "error", err)
	}
	for l := range left {
		s.log.Info("flows from before this daemon move", "from", l, "to", to)
		s.Moved(l, to)
	}
}
