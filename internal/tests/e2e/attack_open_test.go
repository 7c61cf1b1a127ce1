package e2e

import (
	"net/netip"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// TestAttackersBesideAnOpenNetwork: without keys it is the socketIDs that keep off who does not see packets.
func TestAttackersBesideAnOpenNetwork(t *testing.T) {
	safety.Test(t, safety.Door)
	m := theMobile(t)
	if !m.linux() {
		t.Skip("the attackers sit on Linux routers")
	}
	s := m.besieged(m.talks(520))
	beside := m.liar("rb")
	for i, proto := range []string{"tcp", "udp"} {
		c, v := s.ends([]string{"s1", "s2"}[i], proto)
		s.withstands(beside, openGuesses(c, v))
		s.withstands(beside, openGuesses(v, c))
	}
}

// openGuesses are right in all but the socketIDs, which cannot be known.
func openGuesses(victim, peer end) []attack {
	host, from, to := victim.host, peer.at().Addr(uint64(guess())), victim.at().Addr(uint64(guess()))
	liar := peer
	liar.local, liar.peer = from, to
	quote := append(header.AppendIPv6(nil, to, from, header.UDP, 64, 100), make([]byte, 8)...)
	late := liar.rsyn(msg.TypeRACK, peer.at(), peer.at())
	late.Claims[0].Epoch = 0
	resume := msg.Resume{Locator: peer.at(), Claim: msg.Claim{Stable: victim.stable, Epoch: 1, Socket: sid.SocketID(sid.Low(from))}, Proto: sid.TCP}
	return []attack{
		said("RSYN of a flow whose socketIDs are guessed", from, to, liar.rsyn(msg.TypeRSYN, peer.at(), peer.at()), host, "session_refused_claim"),
		said("RSYN-ACK of it", from, to, liar.rsyn(msg.TypeRSYNACK, peer.at(), peer.at()), host, "session_refused_claim"),
		said("RACK of an old epoch", from, to, late, host, "session_refused_claim"),
		said("FLOW-FAIL", from, to, liar.fail(peer.at()), host, "session_late_fail"),
		said("FAIL", from, to, msg.Fail{Reason: msg.HostGone, Quote: quote}, host, "session_stray_fail"),
		said("PROBE", from, to, msg.Probe{}, host, "session_stray_probe"),
		said("RESUME where nobody continues", from, to, resume, host, "session_declined"),
		{"data", udp(from, to, 520, 520, []byte("data")), host, "stray"},
		{"a forged RST", segment(netip.AddrPortFrom(from, 520), netip.AddrPortFrom(to, 520), 1, tcpRST, nil), host, "drop_no_flow_in"},
	}
}

// TestTheLastInstanceIsNotDrainedByAccident: it takes --force.
func TestTheLastInstanceIsNotDrainedByAccident(t *testing.T) {
	m := theAttacked(t)
	sole, err := m.service("sole")
	if err != nil {
		t.Fatal(err)
	}
	m.serveTCP("s1", port(netip.MustParseAddr(sole.Address), 80))
	m.serving("sole", "tcp", 80, 1)
	_, err = m.admin.Drain(t.Context(), connect.NewRequest(&apiv1.DrainRequest{Name: "sole", Host: "s1"}))
	if connect.CodeOf(err) != connect.CodeFailedPrecondition && connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Fatalf("the last instance was drained: %v", err)
	}
	out, err := m.run("s1", self, "service", "drain", "sole", "--instance", "s1")
	if exitCode(err) != 4 || !strings.Contains(out, "force") {
		t.Errorf("service drain: %v, want exit code 4 and a word of --force; it printed:\n%s", err, out)
	}
	m.serving("sole", "tcp", 80, 1)
}
