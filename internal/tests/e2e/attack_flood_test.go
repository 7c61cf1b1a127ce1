package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// floodSize is how many messages a flood has.
const floodSize = 100000

// floodMemory is by how much a daemon may grow meanwhile, in KiB: garbage, not state.
const floodMemory = 64 << 10

// TestAFloodOfRSYNsLeavesNothingBehind sends unresolved RSYNs, each of another flow, to an instance that can
// resume: from senders off path, and from a member of the network, whom it answers. Nothing is kept before a RACK.
func TestAFloodOfRSYNsLeavesNothingBehind(t *testing.T) {
	safety.Test(t, safety.Trace)
	m := theAttacked(t)
	s := m.under(600)
	s.capable("s2", 601)
	place := s.nowhere()
	thief := s.member(place)
	beside, small := m.liar("rb"), s.memory("s2")
	s.counts(beside, attack{"an RSYN of a member", s.flood(thief)[0], "s2", "session_offered"})
	unsigned, strange := s.flood(nil), s.counters("s2")["session_not_authentic"]
	for range floodSize / len(unsigned) {
		for _, p := range unsigned {
			beside.send(p)
		}
	}
	s.reaches("s2", "session_not_authentic", strange+floodMembers) // the rest is metered, if the machine is quick
	s.unmoved("a flood of unsigned RSYNs")
	offered := s.counters("s2")["session_offered"]
	// The daemon takes of each sender in measure, and of what comes while it has no processor its queue keeps a part: how many
	// of one flood are offered is a matter of time. Another one follows until enough were.
	floods := s.flood(thief)
	s.waitFor("the flood", func() error {
		for _, p := range floods {
			beside.send(p)
		}
		if n := s.counters("s2")["session_offered"] - offered; n < floodMembers/2 {
			return fmt.Errorf("s2 offered to %d of a flood, want %d", n, floodMembers/2)
		}
		return nil
	})
	s.unmoved("a flood of RSYNs of a member")
	if now := s.memory("s2"); now > small+floodMemory {
		t.Errorf("the daemon had %d KiB before the flood and has %d", small, now)
	}
	s.declined(beside, thief)
}

// floodMembers is how many different RSYNs are made.
const floodMembers = 1000

// flood is unresolved RSYNs of flows that never were, all different, on their way to the service.
func (s *siege) flood(by *session.Keys) (all [][]byte) {
	place := s.nowhere()
	for range floodMembers {
		from := place.Addr(uint64(guess()))
		var m msg.Message = s.resumption(from, 0)
		if by != nil {
			m = by.Sign(m, place)
		}
		all = append(all, udp(from, s.addr, sid.Port, sid.Port, m.Append(nil)))
	}
	return all
}

// resumption asks to go on with a flow of the sender's own that never was.
func (s *siege) resumption(from netip.Addr, quote sid.SocketID) msg.Resume {
	claim := msg.Claim{Stable: from, Epoch: 1, Socket: sid.SocketID(sid.Low(from)), Quote: quote}
	return msg.Resume{Locator: sid.LocatorOf(from), Claim: claim, Service: s.id(), Proto: sid.TCP,
		Transport: msg.Transport{ClientPort: 1, ServerPort: 601, MSS: 1400}}
}

// declined: who answers no offer, but makes up the socketID that it would have had, is told no.
func (s *siege) declined(l *liar, by *session.Keys) {
	from := s.nowhere().Addr(uint64(guess()))
	to := s.serverAt("s2").Addr(uint64(guess()))
	m := by.Sign(s.resumption(from, sid.SocketID(sid.Low(to))), s.nowhere())
	s.withstands(l, []attack{said("a RACK for an offer that was never made", from, to, m, "s2", "session_declined")})
}

// serverAt is the locator of a host of which a flow is known.
func (s *siege) serverAt(host string) sid.Locator {
	_, v := s.ends(host, "udp")
	return v.at()
}

// capable says that a program on the host can resume, until the test ends.
func (s *siege) capable(host string, at int) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	stream, err := s.daemons[host].Serve(ctx, connect.NewRequest(&apiv1.ServeRequest{Service: s.addr.String(), Proto: "tcp", Port: uint32(at), CanResume: true}))
	if err != nil {
		s.t.Fatal(err)
	}
	if !stream.Receive() {
		s.t.Fatalf("serve on %s: %v", host, stream.Err())
	}
	s.t.Cleanup(func() {
		stop()
		stream.Close()
	})
}

// reaches waits until a host has counted so many.
func (s *siege) reaches(host, name string, want uint64) {
	s.t.Helper()
	s.waitFor("the flood", func() error {
		if n := s.counters(host)[name]; n < want {
			return fmt.Errorf("%s counts %d of %s, want %d", host, n, name, want)
		}
		return nil
	})
}

// memory is what the daemon of a host takes, in KiB.
func (s *siege) memory(host string) int {
	s.t.Helper()
	pids := cgroups.Group(s.lab.Cgroup(host, "hostd")).PIDs()
	if len(pids) == 0 {
		s.t.Fatalf("%s has no hostd", host)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[0]))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "VmRSS:" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	s.t.Fatalf("the status of %d has no VmRSS:\n%s", pids[0], text)
	return 0
}
