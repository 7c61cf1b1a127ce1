package routerd

import (
	"bytes"
	"fmt"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// before is where the server was, at a port of the router that has lost its carrier since.
var before = space.Locator(0x103)

// left is a site whose server was at another port, of a router of the kind.
func left(t *testing.T, service bool) (*site, *fakeSession) {
	s := newSite(t)
	s.cfg.Service = service
	place := nstest.New(t, "before")
	nstest.Veth(t, s.router, "to-before", place, "up")
	start(t, s.router, s.cfg)
	c := s.controller.accept(t, own)
	rules := s.rules(1)
	rules.Routes = append(rules.Routes, &apiv1.Route{Prefix: before.Prefix().String(), Via: place.LinkLocal(t, "up").String(), Port: "to-before", Mac: place.MAC(t, "up")})
	c.snapshot(1, rules)
	place.Down(t, "up")
	return s, c
}

// send is a packet of a flow of the client's to the socketID where the server was.
func (s *site) send(frames *nstest.Frames, p bpftest.Packet) bpftest.Packet {
	s.t.Helper()
	p.Src, p.Dst = client.Addr(uint64(sid.NewSocketID(1))), before.Addr(uint64(sid.NewSocketID(2)))
	head := append(append([]byte(nil), s.router.MAC(s.t, "to-client")...), s.client.MAC(s.t, "up")...)
	frames.Send(s.t, append(append(head, 0x86, 0xdd), p.Bytes()...))
	return p
}

// What comes for a host that left arrives where it is now, data and messages, at once, also while the route to
// where it was still stands and leads to a port without carrier.
func TestPacketsFollowAHostThatLeft(t *testing.T) {
	for name, service := range map[string]bool{"service router": true, "network router": false} {
		t.Run(name, func(t *testing.T) {
			s, c := left(t, service)
			c.delta(&apiv1.Rules{Generation: 2, Redirects: []*apiv1.Redirect{{From: uint64(before), To: uint64(server)}}})
			s.follows()
			c.delta(&apiv1.Rules{Generation: 3, Routes: []*apiv1.Route{{Prefix: before.Prefix().String(), Gone: true}}})
			s.follows()
		})
	}
}

func (s *site) follows() {
	s.t.Helper()
	at, to := s.server.Frames(s.t, "up"), s.client.Frames(s.t, "up")
	rsyn := wire.Probe{Header: wire.Header{Nonce: 7}}.Append(nil)
	for _, p := range []bpftest.Packet{
		{Proto: bpftest.TCP, SPort: 40000, DPort: 80, Flags: bpftest.ACK, Payload: []byte("data in flight")},
		{Proto: bpftest.UDP, SPort: sid.Port, DPort: sid.Port, Payload: rsyn},
	} {
		sent := s.send(to, p)
		at.Next(s.t, fmt.Sprintf("packet of protocol %d at %v", p.Proto, server), func(f []byte) bool {
			if len(f) < 54 || f[12] != 0x86 || f[20] != p.Proto {
				return false
			}
			from, to := bpftest.Addrs(f[14:])
			return from == sent.Src && to == server.Addr(sid.Low(sent.Dst)) && bpftest.ChecksumOK(f[14:]) && bytes.HasSuffix(f, p.Payload)
		})
	}
}

// Where nobody went on, the sender is told, and an ICMPv6 error for want of a route does not come instead.
func TestSendersAreToldThatNobodyIsThere(t *testing.T) {
	for name, service := range map[string]bool{"service router": true, "network router": false} {
		t.Run(name, func(t *testing.T) {
			s, c := left(t, service)
			c.delta(&apiv1.Rules{Generation: 2, Routes: []*apiv1.Route{{Prefix: before.Prefix().String(), Gone: true}}, Gone: []*apiv1.Gone{{Locator: uint64(before)}}})
			at := s.client.Frames(t, "up")
			sent := s.send(at, bpftest.Packet{Proto: bpftest.TCP, SPort: 40000, DPort: 80, Flags: bpftest.ACK, Payload: []byte("anybody there?")})
			at.Next(t, "FAIL to "+sent.Src.String(), func(f []byte) bool {
				if len(f) < 62 || f[12] != 0x86 {
					return false
				}
				from, to := bpftest.Addrs(f[14:])
				if f[20] == bpftest.ICMPv6 && to == sent.Src {
					t.Errorf("ICMPv6 type %d code %d came from %v", f[54], f[55], from)
				}
				m, err := wire.Parse(f[62:])
				fail, ok := m.(wire.Fail)
				return err == nil && ok && fail.Reason == wire.HostGone && from == own.Host() && to == sent.Src && bpftest.ChecksumOK(f[14:])
			})
			if st, err := s.status(); err != nil || st.Counters["answered_gone"] != 1 {
				t.Errorf("counters %v, %v", st.Counters, err)
			}
			c.snapshot(3, s.rules(3)) // which does not name it
			at.Drain(t)
			s.send(at, bpftest.Packet{Proto: bpftest.TCP, SPort: 40000, DPort: 80, Flags: bpftest.ACK})
			at.Next(t, "the kernel's own answer, once nothing is said of the locator", func(f []byte) bool {
				return len(f) >= 62 && f[12] == 0x86 && f[20] == bpftest.ICMPv6 && f[54] == 1
			})
		})
	}
}
