package mobility

import (
	"context"
	"time"

	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// questions are those that the controller is asked, outside the loop.
type questions struct {
	*flows
	ctx        context.Context
	controller Controller

	open    map[Question][]func(there bool) // that it has not answered yet
	curious map[sid.ServiceID][]func()      // wait for a policy that it is asked for
}

func (s *questions) renew() { s.open = map[Question][]func(bool){} }

// A Question to the controller is whether a client's flow has anybody else to turn to: an instance of the triple
// that is not on the host at the locator. Who cannot ask gives nobody up: it may be this host that is cut off.
type Question struct {
	Triple  sid.Triple
	Besides sid.Locator
}

// others calls then in the loop with the controller's answer, if there is one. Who has the same question
// meanwhile gets the same answer.
func (s *questions) others(q Question, then func(there bool)) {
	s.open[q] = append(s.open[q], then)
	if len(s.open[q]) > 1 {
		return
	}
	go func() {
		there, err := s.controller.Others(s.ctx, q)
		s.post(func() {
			list := s.open[q]
			delete(s.open, q)
			if err != nil {
				s.log.Debug("ask whether others serve", "triple", q.Triple, "error", err)
				return
			}
			for _, then := range list {
				then(there)
			}
		})
	}()
}

// unanswered hears that a server answers no PROBE. Its flow is given up where others serve the same; where nobody
// does it waits as TCP does.
func (s *failover) unanswered(c session.Change) {
	v, _ := s.engine.View(c.Key)
	q := Question{sid.Triple{Service: v.Service, Proto: v.Proto, Port: s.held[c.Key].tuple.Remote.Port()}, c.Peer.Locator}
	s.questions.others(q, func(there bool) {
		if there {
			s.questions.whenPoliciesKnown(s.unsure(nil, c.Key), func() {
				s.engine.Lost(time.Now(), wire.Unreachable, func(f session.Flow) bool { return f.Key == c.Key && f.Peer == c.Peer })
			})
			return
		}
		s.tell(time.Now(), c.Key, "stall", "its server does not answer, and nobody else serves the same: it waits")
	})
}

// scoutFirst is after what time the controller is asked whether an instance can go on with a service's flows: it
// knows by then of the one that died, and of one that has just begun.
const scoutFirst = 20 * time.Millisecond

// scout ends the search of a service's flows for another instance at once where there is none.
func (s *failover) scout(id sid.ServiceID) {
	if s.scouted[id] {
		return
	}
	s.scouted[id] = true
	s.scoutAgain(id, scoutFirst)
}

func (s *failover) scoutAgain(id sid.ServiceID, wait time.Duration) {
	time.AfterFunc(wait, func() {
		s.post(func() {
			if len(s.asking(id)) == 0 {
				delete(s.scouted, id)
				return
			}
			s.questions.others(Question{Triple: sid.Triple{Service: id, Proto: sid.UDP, Port: sid.Port}}, func(there bool) { s.found(id, there) })
			s.scoutAgain(id, 2*wait)
		})
	})
}

// found hears whether any instance can go on.
func (s *failover) found(id sid.ServiceID, there bool) {
	if there {
		return
	}
	now := time.Now()
	for _, k := range s.asking(id) {
		s.tell(now, k, "failover", "no instance can go on with it")
		s.engine.Abandon(now, k, wire.NoInstance)
	}
}

// asking are the flows of a service that look for an instance.
func (s *failover) asking(id sid.ServiceID) (keys []session.Key) {
	for k, r := range s.resumes {
		if v, ok := s.engine.View(k); ok && r.asking && v.State == session.Asking && v.Service == id {
			keys = append(keys, k)
		}
	}
	return keys
}
