package mobility

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// These messages are never signed: anybody may have sent them, and any address may stand in them. A flow of the edge
// does not become one of the engine by them, unless they name both of its ends.

// probe answers the peer of a flow, whether the engine has the flow or the edge alone.
func (s *inbound) probe(now time.Time, from, to netip.Addr, m wire.Probe) {
	if !s.gates.probes.Take(now, sid.LocatorOf(from)) {
		s.counters["metered"]++
		return
	}
	if _, ok := s.owner(ours(to)); !ok && s.joins(to, from) {
		s.send([]session.Outgoing{{From: to, To: from, Message: wire.ProbeAck(m)}})
		return
	}
	s.handle(from, to, m, session.Proof{})
}

func (s *inbound) probeAck(now time.Time, from, to netip.Addr, m wire.ProbeAck) {
	if sid.Low(to) == sid.HostSuffix && (s.suspicion.hearAnswer(m.Nonce) || s.sought(now, from, m)) {
		return
	}
	if s.engine.Returned(now, from, to, m) { // what it hears is signed, and says what its flow is called
		if !s.gates.probes.Take(now, sid.LocatorOf(from)) {
			s.counters["metered"]++
			return
		}
		s.known(ours(to))
	}
	s.handle(from, to, m, session.Proof{})
}

// hint has the peer of a flow asked whether it is there, where the packet that came back was the flow's.
func (s *inbound) hint(now time.Time, from, to netip.Addr, m wire.Fail) {
	if len(m.Quote) < ip6Len {
		return
	}
	if !s.gates.hints.Take(now, sid.LocatorOf(from)) {
		s.counters["metered"]++
		return
	}
	if src, dst := addresses(m.Quote); s.joins(src, dst) {
		s.known(ours(src))
	}
	s.handle(from, to, m, session.Proof{})
}

func ours(a netip.Addr) sid.SocketID { return sid.SocketID(sid.Low(a)) }

// joins reports whether a flow of the edge has these two ends, by index.
func (s *flows) joins(local, peer netip.Addr) bool {
	f, ok, err := s.edge.Flow(ours(local))
	return err == nil && ok && f.State != host.Connecting && f.WirePeer.Addr() == peer
}
