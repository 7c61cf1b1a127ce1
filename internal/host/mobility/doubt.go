package mobility

import (
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A suspicion is which hosts are asked whether they are there, because the network hears nothing of them.
type suspicion struct {
	*flows
	questions *questions
	places    Places
	waiting   func() int

	doubts   session.Doubts
	suspects map[sid.Locator]*suspect // at which the doubts are
}

func (s *suspicion) renew() { s.doubts, s.suspects = session.Doubts{}, map[sid.Locator]*suspect{} }

// An Accusation is the controller's word that nobody hears of the hosts at these locators, and of which services
// others take over; none: of all. It is believed once the host itself does not answer us.
type Accusation struct {
	Locators []sid.Locator
	Services []sid.ServiceID
}

// A suspect is a host that is being asked, and for which services' flows that counts.
type suspect struct {
	all      bool
	services map[sid.ServiceID]bool
	from     sid.Locator // where it is asked from
	since    time.Time   // that nothing was heard of it as far as is known
	flows    []host.Tuple
}

// concerns chooses the flows of this host as a client that end if nobody is at the locator.
func (x *suspect) concerns(peer, at sid.Locator, id sid.ServiceID) bool {
	return peer == at && (x.all || x.services[id])
}

// fewSamples is how many flows to one host are asked for the round trip, and whether something came.
const fewSamples = 8

// Accused asks the hosts to which this one has such flows. While it has no link itself, it can tell nothing.
func (s *suspicion) Accused(a Accusation) {
	here, linked := s.places.Preferred()
	if s.engine == nil || !linked {
		return
	}
	for _, l := range a.Locators {
		x := s.suspects[l]
		if x == nil {
			x = &suspect{services: map[sid.ServiceID]bool{}}
		}
		x.all = x.all || len(a.Services) == 0
		for _, id := range a.Services {
			x.services[id] = true
		}
		now := time.Now()
		if s.doubt(now, l, x) {
			s.suspects[l] = x
			s.ask(now, here, l, x)
			s.log.Info("the network hears nothing of a host: it is asked whether it is there", "locator", l)
		}
	}
}

func (s *suspicion) ask(now time.Time, from, l sid.Locator, x *suspect) {
	x.from = from
	s.doubts.Raise(now, from, l, s.edge.ProbeNonce())
}

// doubt prepares for the loss of the flows to a host, if there are any: what must be known of their services is
// asked for now, and how long answers take.
func (s *suspicion) doubt(now time.Time, l sid.Locator, x *suspect) (any bool) {
	var unsure []sid.ServiceID
	x.since, x.flows = now, nil
	err := s.edge.Walk(func(f host.Flow) bool {
		if f.Role != host.Client || !x.concerns(sid.LocatorOf(f.WirePeer.Addr()), l, f.Service) || stale(f) {
			return true
		}
		if f.Proto == sid.TCP {
			unsure = s.unsureOf(unsure, f.Service)
		}
		if len(x.flows) < fewSamples {
			x.flows = append(x.flows, f.Tuple)
		}
		any = true
		return true
	})
	if err != nil {
		s.log.Error("cannot list the flows", "error", err)
	}
	s.questions.whenPoliciesKnown(unsure, func() {})
	s.measure(l, x)
	return any
}

// measure tells how long answers of a host take. The shortest round trip is the path's: some of the others wait
// for a delayed acknowledgement.
func (s *suspicion) measure(l sid.Locator, x *suspect) {
	var least time.Duration
	for _, t := range x.flows {
		if t.Proto != sid.TCP {
			continue
		}
		s.kernel.Read(t, func(c *kick.Socket) {
			if c != nil && c.SRTT > 0 && (least == 0 || c.SRTT < least) {
				least = c.SRTT
				s.doubts.Expect(l, least)
			}
		})
	}
}

// hearAnswer takes an answer to a PROBE of a doubt.
func (s *suspicion) hearAnswer(nonce uint64) bool {
	l, ok := s.doubts.Answered(nonce)
	if ok {
		delete(s.suspects, l)
		s.log.Info("the host answers: its flows stay", "locator", l)
	}
	return ok
}

// excused reports whether a host that has not answered is there for all that: its answer may lie among what this
// busy host has not read yet, or packets of its flows came meanwhile.
func (s *suspicion) excused(now time.Time, l sid.Locator) bool {
	x := s.suspects[l]
	silent := now.Sub(x.since).Milliseconds()
	x.since = now
	return s.waiting() > 0 || s.edge.Unread() || slices.ContainsFunc(x.flows, func(t host.Tuple) bool {
		at, err := s.edge.Heard(t)
		return err == nil && at > 0 && host.IdleMS(at) < silent
	})
}

// giveUpSilent gives up the flows to hosts that have not answered, and sends what asks the others.
func (s *suspicion) giveUpSilent(now time.Time) {
	for _, l := range s.doubts.Expire(now, func(l sid.Locator) bool { return s.excused(now, l) }) {
		x := s.suspects[l]
		here, linked := s.places.Preferred()
		if linked && !s.places.StandsAt(x.from) { // it was asked from where its answer does not come to any more
			s.ask(now, here, l, x)
			continue
		}
		delete(s.suspects, l)
		if !linked { // it is this host that is cut off
			continue
		}
		s.log.Info("a host is gone", "locator", l)
		s.lose(l, x)
	}
	s.send(s.doubts.Drain())
}

// lose ends the flows to a host that is gone, or has them continue elsewhere.
func (s *suspicion) lose(l sid.Locator, x *suspect) {
	var unsure []sid.ServiceID
	for _, k := range s.enterAll(func(f host.Flow) bool {
		return f.Role == host.Client && x.concerns(sid.LocatorOf(f.WirePeer.Addr()), l, f.Service)
	}) {
		unsure = s.unsure(unsure, k)
	}
	s.questions.whenPoliciesKnown(unsure, func() {
		s.engine.Lost(time.Now(), wire.HostGone, func(f session.Flow) bool { return x.concerns(f.Peer.Locator, l, f.Service) })
	})
}
