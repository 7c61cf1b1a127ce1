package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// An attack is a packet, and the counter that has to rise at a host when it came.
type attack struct {
	what          string
	packet        []byte
	host, counter string
}

// A siege is a live network under attack.
type siege struct {
	*mobile
	talks   []*talk
	before  string
	daemons map[string]apiv1connect.LocalClient
}

// under begins streams and datagrams to both servers, moves the client in their midst, and waits until all
// ends agree.
func (m *mobile) under(first int) *siege {
	m.t.Helper()
	s := m.besieged(m.talks(first))
	m.change()
	m.goOn("the move before the attacks", s.talks...)
	nstest.Wait(m.t, m.look(), func() error {
		for _, host := range []string{"s1", "s2"} {
			for stable, f := range m.flows(host) {
				c := m.flows("c1")[stable]
				if c == nil || c.Moves == 0 || endOf("", c, 0).local != endOf("", f, 0).peer || endOf("", c, 0).peer != endOf("", f, 0).local {
					return fmt.Errorf("%s sees %v, the client %v", host, f, c)
				}
			}
		}
		return nil
	})
	s.before = m.picture()
	return s
}

// besieged is the network with these flows as they are.
func (m *mobile) besieged(talks []*talk) *siege {
	s := &siege{mobile: m, talks: talks, daemons: map[string]apiv1connect.LocalClient{}}
	for _, host := range []string{"c1", "s1", "s2"} {
		s.daemons[host] = m.local(host)
	}
	s.before = m.picture()
	return s
}

// ends are both ends of the flow of that protocol to a server, as somebody on the path sees them.
func (s *siege) ends(host, proto string) (client, server end) {
	s.t.Helper()
	for stable, f := range s.flows(host) {
		if f.Proto != proto {
			continue
		}
		c := s.flows("c1")[stable]
		client = endOf("c1", c, f.Moves)
		server = endOf(host, f, c.Moves)
		server.server = true
		return client, server
	}
	s.t.Fatalf("no %s flow at %s:\n%s", proto, host, s.picture())
	return client, server
}

func endOf(host string, f *apiv1.Flow, other uint32) end {
	return end{host: host, local: netip.MustParseAddrPort(f.WireLocal).Addr(), peer: netip.MustParseAddrPort(f.WirePeer).Addr(),
		stable: netip.MustParseAddr(f.Stable), moves: f.Moves, other: other}
}

// withstands sends attacks and wants each counted, the flows as they were and their streams to go on.
func (s *siege) withstands(l *liar, all []attack) {
	s.t.Helper()
	for _, a := range all {
		s.counts(l, a)
	}
	s.unmoved(fmt.Sprintf("%d attacks from %q to %q", len(all), all[0].what, all[len(all)-1].what))
}

// counts sends an attack and wants it counted.
func (s *siege) counts(l *liar, a attack) {
	s.t.Helper()
	was := s.counters(a.host)[a.counter]
	again := time.Now()
	nstest.Wait(s.t, s.look(), func() error {
		if time.Now().After(again) {
			l.send(a.packet) // again, since what is metered may be lost
			again = time.Now().Add(time.Second)
		}
		if s.counters(a.host)[a.counter] > was {
			return nil
		}
		return fmt.Errorf("%s: %s counts %s %d times as before; all: %v", a.what, a.host, a.counter, was, s.counters(a.host))
	})
}

// counters are all of a host.
func (s *siege) counters(host string) map[string]uint64 {
	s.t.Helper()
	r, err := s.daemons[host].GetHostStatus(s.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Msg.Counters
}

// unmoved wants the flows as they were when the siege began.
func (s *siege) unmoved(what string) {
	s.t.Helper()
	s.goOn(what, s.talks...)
	if now := s.picture(); now != s.before {
		s.t.Fatalf("after %s the flows are\n%sand before they were\n%slook at: %s", what, now, s.before, s.look())
	}
}

// said is a message as an attack.
func said(what string, from, to netip.Addr, m msg.Message, host, counter string) attack {
	return attack{what, udp(from, to, sid.Port, sid.Port, m.Append(nil)), host, counter}
}

// told is what people see of a host's flows: `scaffold flow ls -o json` without what changes by itself.
func (m *mobile) told(host string) string {
	m.t.Helper()
	out, err := m.run(host, self, "flow", "ls", "-o", "json")
	var list struct{ Flows []map[string]any }
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		m.t.Fatalf("flow ls on %s: %v\n%s", host, err, out)
	}
	var s strings.Builder
	for _, f := range list.Flows {
		delete(f, "idleMs")
		delete(f, "idle_ms")
		fmt.Fprintln(&s, f)
	}
	return s.String()
}

// TestAttackersChangeNoFlow besieges live flows from beside the path and from a router on it.
func TestAttackersChangeNoFlow(t *testing.T) {
	safety.Test(t, safety.Door)
	m := theAttacked(t)
	ear := m.listen("rs")
	s := m.under(500)
	told := m.told("c1")
	beside, on := m.liar("rb"), m.liar("rs")
	for _, each := range s.guesses() {
		s.withstands(beside, each)
	}
	for _, each := range s.forgeries(ear) {
		s.withstands(on, each)
	}
	s.replays(beside, on, ear)
	if now := m.told("c1"); now != told {
		t.Errorf("flow ls says\n%sand before\n%s", now, told)
	}
	s.control(on)
}
