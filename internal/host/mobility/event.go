package mobility

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// inbound is what comes from the edge: messages of anybody, and what the edge saw.
type inbound struct {
	*flows
	failover  *failover
	suspicion *suspicion
	questions *questions
	reports   *reports
	settle    func(now time.Time)

	gates   gates
	reached reached
	secret  [32]byte // random; of what unknown senders are asked
	stirred bool     // an event was read since findUntold looked
	untold  uint64   // of the edge, then
}

func (s *inbound) renew() { rand.Read(s.secret[:]) }

// Event takes what the edge saw; refusals go elsewhere.
func (s *inbound) Event(e host.Event) {
	if s.engine == nil {
		return
	}
	now := time.Now()
	s.stirred = true
	switch e.Kind {
	case host.Message:
		s.message(now, e.Packet)
	case host.Stray:
		s.stray(now, e.Packet)
	case host.Answered:
		s.answered(now, e)
	case host.Died:
		s.died(now, e)
	}
}

const (
	ip6Len = header.IPv6Len
	udpLen = header.UDPLen
)

// addresses are those of an IPv6 packet.
func addresses(packet []byte) (from, to netip.Addr) {
	ip := header.IPv6(packet)
	return ip.Src(), ip.Dst()
}

// unread is how what is no message counts.
func unread(err error) string {
	if errors.Is(err, wire.ErrVersion) {
		return "other_version"
	}
	return "malformed"
}

// message takes one of docs/protocol.md §4 and §6. Signatures are looked at before anything is done for it, and before
// those no more than a few flows, by index: what comes may be from anybody.
func (s *inbound) message(now time.Time, packet []byte) {
	if len(packet) < ip6Len+udpLen {
		return
	}
	m, err := wire.Parse(packet[ip6Len+udpLen:])
	if err != nil {
		s.counters[unread(err)]++
		s.log.Debug("message", "error", err)
		return
	}
	from, to := addresses(packet)
	switch m := m.(type) {
	case wire.Renegotiate, wire.Resume, wire.FlowFail:
		s.signed(now, from, to, m)
	case wire.Probe:
		s.probe(now, from, to, m)
	case wire.ProbeAck:
		s.probeAck(now, from, to, m)
	case wire.Fail:
		s.hint(now, from, to, m)
	default:
		s.handle(from, to, m, session.Proof{})
	}
}

// signed takes a message that proves who sent it, in a network with keys.
func (s *inbound) signed(now time.Time, from, to netip.Addr, m wire.Message) {
	if !s.admits(now, from, to, m) {
		s.counters["metered"]++
		return
	}
	proof, ok := s.engine.Prove(now, m)
	if !ok {
		return
	}
	for _, id := range quoted(m) {
		s.known(id)
	}
	s.questions.whenPoliciesKnown(s.asked(m), func() { s.handle(from, to, m, proof) })
}

func (s *inbound) handle(from, to netip.Addr, m wire.Message, proof session.Proof) {
	now := time.Now()
	before := s.positions(m)
	s.failover.reread(now, m)
	s.engine.HandleProved(now, from, to, m, proof)
	s.tellMoves(now, before)
	if s.engine.Pending() >= 2*atOnce { // of a great move; its next messages wait, and its peer does not
		s.settle(now)
	}
}

// quoted are the socketIDs of ours that a signed message names.
func quoted(m wire.Message) (ids []sid.SocketID) {
	switch m := m.(type) {
	case wire.Renegotiate:
		for i := range m.Claims {
			ids = append(ids, m.Claims[i].Quote)
		}
	case wire.FlowFail:
		for i := range m.Flows {
			ids = append(ids, m.Flows[i].Socket)
		}
	}
	return ids
}

// asked are the services whose flows the message may end: whether they continue elsewhere must be known.
func (s *inbound) asked(m wire.Message) (list []sid.ServiceID) {
	if f, ok := m.(wire.FlowFail); ok {
		for i := range f.Flows {
			if k, ok := s.engine.Owner(f.Flows[i].Socket); ok {
				list = s.unsure(list, k)
			}
		}
	}
	return list
}

// stray answers a packet for a socketID that nobody has here: its sender's flow is no more.
func (s *inbound) stray(now time.Time, packet []byte) {
	if len(packet) < wire.MinQuote {
		return
	}
	from, to := addresses(packet)
	if !s.gates.strays.Take(now, sid.LocatorOf(from)) {
		return
	}
	fail := wire.Fail{Reason: wire.NoSocket, Quote: packet[:min(len(packet), wire.MinQuote+32)]}
	if err := s.edge.Send(to, from, 0, fail.Append(nil)); err != nil {
		s.log.Debug("answer a stray packet", "to", from, "error", err)
	}
}

// answered hears that a connecting flow that had to try again has a peer. Under which name, the edge knows:
// what was sent to where this host was is redirected here, and the answer then names this place.
func (s *inbound) answered(now time.Time, e host.Event) {
	id := sid.SocketID(sid.Low(e.To))
	if _, ok := s.engine.Owner(id); !ok {
		return // one that was unbound: nothing is owed to it
	}
	if f, ok, err := s.edge.Flow(id); err == nil && ok && f.State == host.BoundFlow {
		s.established(now, f)
	}
}

// died hears of a server's process that is no more: its clients are told by FAIL, not by an RST.
func (s *inbound) died(now time.Time, e host.Event) {
	k, ok := s.find(e.Tuple)
	if ok {
		s.tell(now, k, "fail", "the process that served it died")
		s.fail(now, wire.ProcessDied, []session.Key{k})
	}
}

// findUntold looks for connections whose process died while the edge had no room to tell: once all that it did tell has
// been read, for only then is there room.
func (s *inbound) findUntold(now time.Time) {
	if !s.stirred || s.edge.Unread() {
		return
	}
	s.stirred = false
	n, err := s.edge.Untold()
	if err != nil || n == s.untold {
		return
	}
	s.untold = n
	var dead []host.Flow
	err = s.edge.Walk(func(f host.Flow) bool {
		if f.Untold {
			dead = append(dead, f)
		}
		return true
	})
	if err != nil {
		s.log.Error("cannot list the flows: those of a process that died may wait", "error", err)
	}
	for _, f := range dead {
		if k, ok := s.enter(f); ok {
			s.tell(now, k, "fail", "the process that served it died")
			s.fail(now, wire.ProcessDied, []session.Key{k})
		}
	}
}
