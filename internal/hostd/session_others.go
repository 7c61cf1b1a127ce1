package hostd

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A question to the controller is whether a client's flow has anybody else to turn to: an instance of the triple
// that is not on the host at the locator. Who cannot ask gives nobody up: it may be this host that is cut off.
type question struct {
	triple  sid.Triple
	besides sid.Locator
}

// othersLimit bounds how long the answer takes.
const othersLimit = 2 * time.Second

// others calls then in the loop with the controller's answer, if there is one. Who has the same question
// meanwhile gets the same answer.
func (s *sessions) others(q question, then func(there bool)) {
	s.questions[q] = append(s.questions[q], then)
	if len(s.questions[q]) > 1 {
		return
	}
	go func() {
		there, err := s.d.control.others(s.d.ctx, q)
		s.d.post(func() {
			list := s.questions[q]
			delete(s.questions, q)
			if err != nil {
				s.d.log.Debug("ask whether others serve", "triple", q.triple, "error", err)
				return
			}
			for _, then := range list {
				then(there)
			}
		})
	}()
}

// others asks the controller.
func (c *control) others(ctx context.Context, q question) (bool, error) {
	_, client, _ := c.current()
	if client == nil {
		return false, errors.New("no way to the controller yet")
	}
	ctx, cancel := context.WithTimeout(ctx, othersLimit)
	defer cancel()
	t := q.triple
	resp, err := apiv1connect.NewAgentClient(client, api.BaseURL()).Others(ctx, connect.NewRequest(&apiv1.OthersRequest{
		Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port), Besides: uint64(q.besides)}))
	if err != nil {
		return false, err
	}
	return resp.Msg.There, nil
}

// unanswered hears that a server answers no PROBE. Its flow is given up where others serve the same; where nobody
// does it waits as TCP does.
func (s *sessions) unanswered(c session.Change) {
	v, _ := s.engine.View(c.Key)
	q := question{sid.Triple{Service: v.Service, Proto: v.Proto, Port: s.held[c.Key].tuple.Remote.Port()}, c.Peer.Locator}
	s.others(q, func(there bool) {
		if there {
			s.whenPoliciesKnown(s.unsure(nil, c.Key), func() {
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
func (s *sessions) scout(id sid.ServiceID) {
	if s.scouted[id] {
		return
	}
	s.scouted[id] = true
	s.scoutAgain(id, scoutFirst)
}

func (s *sessions) scoutAgain(id sid.ServiceID, wait time.Duration) {
	time.AfterFunc(wait, func() {
		s.d.post(func() {
			if len(s.asking(id)) == 0 {
				delete(s.scouted, id)
				return
			}
			s.others(question{triple: sid.Triple{Service: id, Proto: sid.UDP, Port: sid.Port}}, func(there bool) { s.found(id, there) })
			s.scoutAgain(id, 2*wait)
		})
	})
}

// found hears whether any instance can go on.
func (s *sessions) found(id sid.ServiceID, there bool) {
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
func (s *sessions) asking(id sid.ServiceID) (keys []session.Key) {
	for k, r := range s.resumes {
		if v, ok := s.engine.View(k); ok && r.asking && v.State == session.Asking && v.Service == id {
			keys = append(keys, k)
		}
	}
	return keys
}
