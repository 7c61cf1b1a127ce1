package hostd

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// event takes what the edge saw; refusals go elsewhere.
func (s *sessions) event(e host.Event) {
	if s.engine == nil {
		return
	}
	now := time.Now()
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
	ip6Len = 40
	udpLen = 8
)

// addresses are those of an IPv6 packet.
func addresses(packet []byte) (from, to netip.Addr) {
	return netip.AddrFrom16([16]byte(packet[8:])), netip.AddrFrom16([16]byte(packet[24:]))
}

// unread is how what is no message counts.
func unread(err error) string {
	if errors.Is(err, wire.ErrVersion) {
		return "other_version"
	}
	return "malformed"
}

// message takes one of docs/protocol.md §4 and §6.
func (s *sessions) message(now time.Time, packet []byte) {
	if len(packet) < ip6Len+udpLen {
		return
	}
	m, err := wire.Parse(packet[ip6Len+udpLen:])
	if err != nil {
		s.counters[unread(err)]++
		s.d.log.Debug("message", "error", err)
		return
	}
	from, to := addresses(packet)
	if ack, ok := m.(wire.ProbeAck); ok && sid.Low(to) == sid.HostSuffix && s.acquit(ack.Nonce) {
		return
	}
	s.enterQuoted(m, to)
	services := s.asked(m)
	if len(services) > 0 && !s.engine.Authentic(now, m) {
		return // the controller is not asked on a stranger's word
	}
	s.whenPoliciesKnown(services, func() { s.handle(from, to, m) })
}

// fewQuoted is how many flows are looked up one by one; of more, a walk finds all that go to the same peer.
const fewQuoted = 4

// enterQuoted enters the flows that a message names.
func (s *sessions) enterQuoted(m wire.Message, to netip.Addr) {
	ids := quoted(m, to)
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id sid.SocketID) bool {
		_, ok := s.owner(id)
		return ok
	})
	if r, ok := m.(wire.Renegotiate); ok && len(unknown) > fewQuoted {
		s.enterAll(func(f host.Flow) bool { return sid.LocatorOf(f.WirePeer.Addr()) == r.Old })
	}
	for _, id := range unknown {
		s.known(id)
	}
}

func (s *sessions) handle(from, to netip.Addr, m wire.Message) {
	now := time.Now()
	before := s.positions(m)
	s.engine.Handle(now, from, to, m)
	s.tellMoves(now, before)
	if s.engine.Pending() >= 2*atOnce { // of a great move; its next messages wait, and its peer does not
		s.settle(now)
	}
}

// quoted are the socketIDs of ours that a message names.
func quoted(m wire.Message, to netip.Addr) (ids []sid.SocketID) {
	switch m := m.(type) {
	case wire.Renegotiate:
		for i := range m.Claims {
			ids = append(ids, m.Claims[i].Quote)
		}
	case wire.FlowFail:
		for i := range m.Flows {
			ids = append(ids, m.Flows[i].Socket)
		}
	case wire.Fail:
		if len(m.Quote) >= ip6Len {
			from, _ := addresses(m.Quote)
			ids = append(ids, sid.SocketID(sid.Low(from)))
		}
	case wire.Probe, wire.ProbeAck:
		ids = append(ids, sid.SocketID(sid.Low(to)))
	}
	return ids
}

// asked are the services whose flows the message may end: whether they continue elsewhere must be known.
func (s *sessions) asked(m wire.Message) (list []sid.ServiceID) {
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
func (s *sessions) stray(now time.Time, packet []byte) {
	if len(packet) < wire.MinQuote || !s.strays.allow(now) {
		return
	}
	from, to := addresses(packet)
	fail := wire.Fail{Reason: wire.NoSocket, Quote: packet[:min(len(packet), wire.MinQuote+32)]}
	if err := s.edge.Send(to, from, 0, fail.Append(nil)); err != nil {
		s.d.log.Debug("answer a stray packet", "to", from, "error", err)
	}
}

// answered hears that a connecting flow that had to try again has a peer. Under which name, the edge knows:
// what was sent to where this host was is redirected here, and the answer then names this place.
func (s *sessions) answered(now time.Time, e host.Event) {
	id := sid.SocketID(sid.Low(e.To))
	if _, ok := s.engine.Owner(id); !ok {
		return // one that was unbound: nothing is owed to it
	}
	if f, ok, err := s.edge.Flow(id); err == nil && ok && f.State == host.BoundFlow {
		s.established(now, f)
	}
}

// died hears of a server's process that is no more: its clients are told by FAIL, not by an RST.
func (s *sessions) died(now time.Time, e host.Event) {
	k, ok := s.find(e.Tuple)
	if ok {
		s.tell(now, k, "fail", "the process that served it died")
		s.fail(now, wire.ProcessDied, []session.Key{k})
	}
}

// A meter lets so many through a second.
type meter struct {
	left int
	at   time.Time
}

const strayRate = 1000

func (m *meter) allow(now time.Time) bool {
	if now.Sub(m.at) >= time.Second {
		m.left, m.at = strayRate, now
	}
	m.left--
	return m.left >= 0
}
