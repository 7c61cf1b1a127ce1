package forward_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
)

// A fan is a router with a probe at port 0 and others at the ports after it, and a route over all of them.
type fan struct {
	*line
	probes []*probe
}

func newFan(t testing.TB, n int, salt uint64) *fan {
	t.Helper()
	f, err := forward.New(forward.Config{Addresses: []netip.Addr{addr("fd00::1"), addr("10.9.0.1")}, Salt: salt})
	must(t, err)
	x := &fan{line: &line{Net: emu.New(emu.Options{Virtual: true, Log: t.Logf})}}
	t.Cleanup(func() { x.Close() })
	x.routers, x.nodes = append(x.routers, f), append(x.nodes, x.Router("r", f))
	route := forward.Route{Prefix: prefix("fd0b::/16")}
	for i := range n + 1 {
		p := &probe{}
		p.router = x.Router(fmt.Sprint("p", i), p)
		x.join(t, p.router, x.nodes[0])
		x.probes = append(x.probes, p)
		if i > 0 {
			route.Hops = append(route.Hops, forward.NextHop{Port: i})
		}
	}
	x.ends[0] = x.probes[0]
	must(t, f.Add(route))
	route.Prefix = prefix("10.0.2.0/24")
	must(t, f.Add(route))
	must(t, f.Add(forward.To(prefix("fd0a::/16"), 0)))
	x.run(t)
	return x
}

// flow is the packet of a flow: with a label of IPv6 if it has one, with ports otherwise.
func flow(i int, six, label bool) []byte {
	from, to := "10.0.1.1", "10.0.2.1"
	if six {
		from, to = "fd0a::1", "fd0b::1"
	}
	b := traffic.Datagram(addr(from), addr(to), 64, uint16(i), 64)
	if label {
		binary.BigEndian.PutUint32(b, 0x6<<28|uint32(i+1))
		binary.BigEndian.PutUint16(b[40:], 7)
	}
	return b
}

// arrivals are the numbers of packets at each probe since the last call.
func (x *fan) arrivals() (n []int) {
	for _, p := range x.probes[1:] {
		n = append(n, len(p.got))
		p.got = nil
	}
	return n
}

func TestFlowsAreSpreadAndStay(t *testing.T) {
	for name, kind := range map[string][2]bool{"labels": {true, true}, "ports 6": {true, false}, "ports 4": {false, false}} {
		x := newFan(t, 4, 0)
		for i := range 4000 {
			x.ends[0].send(t, flow(i, kind[0], kind[1]))
		}
		x.run(t)
		for i, n := range x.arrivals() {
			if n < 850 || n > 1150 { // 1000 ± 5.5 standard deviations
				t.Errorf("%s: %d of 4000 flows by port %d", name, n, i+1)
			}
		}
		for range 10 {
			x.ends[0].send(t, flow(1, kind[0], kind[1]))
		}
		x.run(t)
		whole := 0
		for _, n := range x.arrivals() {
			if n == 10 {
				whole++
			}
		}
		if whole != 1 {
			t.Errorf("%s: a flow is on several paths", name)
		}
	}
}

// Fragments have no ports: all of a flow must take the path of the others of their packet.
func TestFragmentsStayTogether(t *testing.T) {
	x := newFan(t, 4, 0)
	for i := range 100 {
		b := flow(i, false, false)
		b[6] = []byte{0x20, 0}[i%2]
		b[7] = byte(i % 2)
		x.ends[0].send(t, aged(b, 64))
	}
	x.run(t)
	if n := x.arrivals(); max(n[0], n[1], n[2], n[3]) != 100 {
		t.Errorf("%v", n)
	}
}

// Two routers in a row choose independently, or the second would find only one of its paths used.
func TestRoutersChooseEachForItself(t *testing.T) {
	var both [2][2]int
	x, y := newFan(t, 2, 1), newFan(t, 2, 2)
	for i := range 1000 {
		for _, z := range []*fan{x, y} {
			z.ends[0].send(t, flow(i, true, true))
			z.run(t)
		}
		both[x.arrivals()[0]][y.arrivals()[0]]++
	}
	for _, n := range append(both[0][:], both[1][:]...) {
		if n < 180 || n > 320 {
			t.Errorf("%v", both)
		}
	}
}

func TestAPortThatIsDownIsNotUsed(t *testing.T) {
	x := newFan(t, 3, 0)
	send := func() (ways []int) {
		for i := range 300 {
			x.ends[0].send(t, flow(i, true, true))
			x.run(t)
			for port, n := range x.arrivals() {
				if n == 1 {
					ways = append(ways, port)
				}
			}
		}
		return ways
	}
	before := send()
	x.Links()[2].SetUp([2]bool{true, false}) // port 2, in one direction
	during := send()
	if len(before) != 300 || len(during) != 300 {
		t.Fatalf("%d, %d arrived", len(before), len(during))
	}
	for i := range before {
		if during[i] == 1 || before[i] != 1 && before[i] != during[i] {
			t.Fatalf("flow %d by port %d, then %d", i, before[i]+1, during[i]+1)
		}
	}
	for _, i := range []int{1, 3} {
		x.Links()[i].SetUp([2]bool{})
	}
	if len(send()) != 0 || x.routers[0].Counters().Told[forward.LinkDown] == 0 || len(x.ends[0].got) == 0 {
		t.Errorf("%+v", x.routers[0].Counters())
	}
	for _, i := range []int{1, 2, 3} {
		x.Links()[i].SetUp([2]bool{true, true})
	}
	if after := send(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("flows do not return")
	}
}

func TestPacketsAreTakenApartAsIPv4Does(t *testing.T) {
	l := newLine(t, 2, func(i int, c *forward.Config) {
		if i == 1 {
			c.Ports = []forward.PortConfig{{}, {MTU: 600}}
		}
	})
	sent := traffic.Datagram(addr("10.0.1.1"), addr("10.0.2.1"), 64, 1, 1436)
	options := []byte{7, 3, 4, 1, 0x94, 4, 0, 0} // record route, which is not copied; router alert, which is
	sent = append(append(bytes.Clone(sent[:20]), options...), sent[20:]...)
	sent[0] = 0x47
	binary.BigEndian.PutUint16(sent[2:], uint16(len(sent)))
	sent[10], sent[11] = 0, 0
	binary.BigEndian.PutUint16(sent[10:], checksum(sent[:28]))
	l.ends[0].send(t, sent)
	l.run(t)
	got := l.ends[1].got
	if len(got) != 3 {
		t.Fatalf("%d fragments", len(got))
	}
	var payload []byte
	for i, g := range got {
		b := g.bytes
		place := binary.BigEndian.Uint16(b[6:])
		if g.hop != 62 || len(b) > 600 || int(place&0x1fff)*8 != len(payload) || place&0x2000 != 0 != (i < 2) || int(binary.BigEndian.Uint16(b[2:])) != len(b) {
			t.Errorf("fragment %d: %v", i, g)
		}
		b[8] = g.hop
		if checksum(b[:28]) != 0 && checksum(aged(b, g.hop)[:20]) != 0 {
			t.Errorf("fragment %d: checksum %v", i, g)
		}
		if want := map[bool][]byte{true: options, false: {1, 1, 1, 1, 0x94, 4, 0, 0}}[i == 0]; !bytes.Equal(b[20:28], want) {
			t.Errorf("fragment %d: options %x", i, b[20:28])
		}
		payload = append(payload, b[28:]...)
	}
	if !bytes.Equal(payload, sent[28:]) {
		t.Error("the payload is another one")
	}
}
