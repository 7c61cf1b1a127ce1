package routerd

import (
	"bytes"
	"fmt"
	"net"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Attack: a machine at a host's port sends in the name of other hosts: of one at another port of the router, of one of
// another router, and of nobody. The router is what stops it, whatever runs on the machine.
func TestAMachineSendsInNobodysNameButItsOwn(t *testing.T) {
	safety.Test(t, safety.Door)
	for name, service := range map[string]bool{"service router": true, "network router": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.cfg.Service = service
			start(t, s.router, s.cfg)
			c := s.controller.accept(t, own)
			rules := s.rules(1)
			rules.Sources = []*apiv1.Source{{Port: "to-client", Locator: uint64(client)}, {Port: "to-server", Locator: uint64(server)}}
			c.filtered(1, rules)
			to, at := s.client.Frames(t, "up"), s.server.Frames(t, "up")
			dropped := 0
			only := func(what string, from sid.Locator, comes bool) {
				t.Helper()
				if !comes {
					dropped++
				}
				s.from(to, from, what)
				s.from(to, client, "behind: "+what)
				first := at.Next(t, what, func(f []byte) bool { return len(f) > 54 && f[12] == 0x86 && bytes.Contains(f, []byte(what)) })
				if got := !bytes.Contains(first, []byte("behind: ")); got != comes {
					t.Errorf("%s, from %v: it arrives: %v, want %v", what, from, got, comes)
				}
				at.Drain(t)
			}
			roams := sid.Locator(uint64(server) + 0x100)
			only("as another host of this router", server, false)
			only("as a host of another one", roams, false)
			only("as the router", own, false)
			c.delta(&apiv1.Rules{Generation: 2, Sources: []*apiv1.Source{{Port: "to-client", Locator: uint64(roams)}}})
			only("as what it was elsewhere", roams, true)
			c.delta(&apiv1.Rules{Generation: 3, Sources: []*apiv1.Source{{Port: "to-client", Locator: uint64(roams), Gone: true}}})
			only("when it is that no more", roams, false)
			if st, err := s.status(); err != nil || st.Counters["dropped_source"] != uint64(dropped) {
				t.Errorf("counters %v, %v; want %d dropped_source", st.Counters, err, dropped)
			}
			// A router is there: what it sends may be from anywhere.
			greet := s.client.ListenPacket(t, "udp6", fmt.Sprintf("[::]:%d", sid.Port))
			hello := wire.Hello{Name: "r9", Port: "x"}
			all := &net.UDPAddr{IP: net.ParseIP("ff02::1"), Port: sid.Port, Zone: fmt.Sprint(s.client.Index(t, "up"))}
			if _, err := greet.WriteTo(hello.Append(nil), all); err != nil {
				t.Fatal(err)
			}
			c.await("the link", func(r *apiv1.RouterReport) bool { return len(r.GetNeighbours().GetLinks()) == 1 })
			only("through a router", roams, true)
			// A controller of before, or one that does not know who is where.
			c.snapshot(4, s.rules(4))
			only("when nobody knows", server, true)
		})
	}
}

// filtered is snapshot by a controller that knows from where packets may come.
func (s *fakeSession) filtered(generation uint64, rules *apiv1.Rules) {
	s.t.Helper()
	s.order(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Begin{Begin: &apiv1.SnapshotBegin{Generation: generation}}})
	s.order(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: rules}})
	s.order(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Commit{Commit: &apiv1.Commit{Generation: generation, Filter: true}}})
	s.applied(generation)
}

// from sends a datagram of a flow to the server, by the client's port.
func (s *site) from(frames *nstest.Frames, l sid.Locator, payload string) {
	s.t.Helper()
	p := bpftest.Packet{Src: l.Addr(uint64(sid.NewSocketID(1))), Dst: server.Addr(uint64(sid.NewSocketID(2))), Proto: bpftest.UDP, SPort: 4000, DPort: 5000, Payload: []byte(payload)}
	head := append(append([]byte(nil), s.router.MAC(s.t, "to-client")...), s.client.MAC(s.t, "up")...)
	frames.Send(s.t, append(append(head, 0x86, 0xdd), p.Bytes()...))
}
