package flow

import (
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// The rules themselves are tested in internal/bpf/host, where programs and machine meet. Here is what the
// programs leave to Go: time and states.

var (
	space = sid.DefaultSpace()
	start = time.Unix(1000, 0)
	web   = sid.ServiceID{SS: 1, Suffix: 0xc0ffee00}
	vid   = netip.MustParseAddr("fd5e::7")
)

func machine() *Machine {
	m := New(Config{Space: space, NewID: (&IDs{}).New})
	m.SetUplink(1, Uplink{Locator: space.Locator(0x101), MTU: 1500})
	m.AcceptLocator(space.Locator(0x101), true)
	return m
}

// synPacket is a bare SYN to web, port 80.
func synPacket() []byte {
	b := append(header.AppendIPv6(nil, vid, space.ServiceAddr(web), header.TCP, ownHops, tcpLen), make([]byte, tcpLen)...)
	b[ip6Len+3], b[ip6Len+12], b[ip6Len+13] = 80, tcpLen/4<<4, syn
	header.Seal(b)
	return b
}

func TestConnectingFlowExpires(t *testing.T) {
	m := machine()
	if !m.Deadline().IsZero() {
		t.Fatal("a deadline without a flow")
	}
	m.Handle(start, Packet{From: FromHost, Uplink: 1, Data: synPacket()})
	if out := m.Drain(); len(out) != 1 || out[0].Verdict != Pass {
		t.Fatalf("SYN: %v", out)
	}
	if d := m.Deadline(); d != start.Add(ConnectingIdle) {
		t.Fatalf("deadline %v, want %v", d, start.Add(ConnectingIdle))
	}
	m.Expire(m.Deadline().Add(-1))
	if m.Deadline().IsZero() {
		t.Fatal("ended before its time")
	}
	m.Expire(m.Deadline())
	m.Flows(func(c *Conn, s State) bool { t.Errorf("%v is still %v", c.ID, s); return true })
}

func TestIllegalMoveIsOurBug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("closed -> bound did not panic")
		}
	}()
	(&Conn{state: Closed}).become(Bound)
}

func FuzzHandle(f *testing.F) {
	f.Add(synPacket(), true)
	f.Fuzz(func(t *testing.T, b []byte, leaves bool) {
		m := machine()
		in := Packet{From: FromWire, Uplink: 1, Data: b}
		if leaves {
			in.From = FromHost
		}
		m.Handle(start, Packet{From: FromHost, Uplink: 1, Data: synPacket()})
		m.Handle(start, in)
		for _, o := range m.Drain() {
			leaks(t, o, leaves)
		}
	})
}

// leaks fails the test when a service or identity address would be a source on the wire.
func leaks(t *testing.T, o Output, leaves bool) {
	p, ok := parse(o.Data)
	if !ok || !leaves || o.Verdict != Pass {
		return
	}
	if space.Services.Contains(p.src) || space.Identities.Contains(p.src) {
		t.Errorf("source %v on the wire", p.src)
	}
}
