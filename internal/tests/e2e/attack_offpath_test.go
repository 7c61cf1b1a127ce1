package e2e

import (
	"math/rand/v2"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// Flags of TCP.
const (
	tcpRST = 4
	tcpACK = 16
)

// guess is a socketID that nobody has.
func guess() sid.SocketID { return sid.NewSocketID(rand.Uint64()) }

// guesses are what somebody beside the path can send. Sources are forged; the locators are known to all, the
// socketIDs to nobody but the path.
func (s *siege) guesses() (all [][]attack) {
	for i, proto := range []string{"tcp", "udp"} {
		c, v := s.ends([]string{"s1", "s2"}[i], proto)
		all = append(all, s.guessesAt(c, v), s.guessesAt(v, c))
	}
	return all
}

// guessesAt go to a victim as if they came from its peer.
func (s *siege) guessesAt(victim, peer end) []attack {
	host, from, to := victim.host, peer.at().Addr(uint64(guess())), victim.at().Addr(uint64(guess()))
	quote := header.AppendIPv6(nil, to, from, header.UDP, 64, 100)
	unknown := peer
	unknown.local, unknown.peer = from, to
	thief := s.member(s.nowhere())
	claim := thief.Sign(unknown.rsyn(msg.TypeRSYN, s.nowhere(), s.nowhere()), s.nowhere())
	forged := segment(netip.AddrPortFrom(from, 500), netip.AddrPortFrom(victim.local, 500), 7, tcpRST|tcpACK, nil)
	return []attack{
		{"data for a socketID that is not there", udp(from, to, 500, 500, []byte("data")), host, "stray"},
		{"data for a socketID of the victim from a wrong one", udp(from, victim.local, 500, 500, []byte("data")), host, "drop_bad_port"},
		{"a forged RST", forged, host, "drop_bad_port"},
		said("FAIL to the host itself", from, victim.at().Host(), msg.Fail{Reason: msg.HostGone, Quote: quote}, host, "drop_unasked"),
		said("FAIL for a flow that is not there", from, to, msg.Fail{Reason: msg.NoSocket, Quote: quote}, host, "session_stray_fail"),
		said("RSYN for a socketID that is not there", from, to, unknown.rsyn(msg.TypeRSYN, peer.at(), peer.at()), host, "session_not_authentic"),
		said("RSYN of another member for it", from, to, claim, host, "session_other_key"),
		said("PROBE of a flow that is not there", from, to, msg.Probe{Header: msg.Header{Nonce: 7}}, host, "session_stray_probe"),
		said("PROBE-ACK that nobody asked for", from, to, msg.ProbeAck{Header: msg.Header{Nonce: 7}}, host, "session_stray_probe"),
		said("FLOW-FAIL for a flow that is not there", from, to, thief.Sign(unknown.fail(s.nowhere()), s.nowhere()), host, "session_late_fail"),
		said("BOUND", from, to, msg.Bound{Socket: guess()}, host, "session_unknown_message"),
		{"what is no message", udp(from, to, sid.Port, sid.Port, []byte{1, 7, 0, 99, 0, 0}), host, "session_malformed"},
	}
}
