package userstack

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
)

var (
	routerMAC  = [6]byte{2, 0, 0, 0, 0, 1}
	hostMAC    = [6]byte{2, 0, 0, 0, 0, 2}
	routerAddr = netip.MustParseAddr("fe80::ff:fe00:1")
	hostAddr   = netip.MustParseAddr("fe80::ff:fe00:2")
)

const patience = 20 * time.Second

// A cable carries frames both ways between ports of stacks, in order, with loss where the test asks for it.
type cable struct {
	t     *testing.T
	ends  map[*Stack]*end
	queue chan queued
	seen  func(from *Stack, frame []byte) // each frame, before it may be lost
	loss  float64
	done  chan struct{}
}

type end struct {
	to   *Stack
	port string // there
}

type queued struct {
	from  *Stack
	frame []byte
}

func newCable(t *testing.T, loss float64) *cable {
	c := &cable{t: t, ends: map[*Stack]*end{}, queue: make(chan queued, 1024), loss: loss, done: make(chan struct{})}
	var carrying sync.WaitGroup
	carrying.Go(c.carry)
	t.Cleanup(func() { close(c.done); carrying.Wait() })
	return c
}

func (c *cable) put(from *Stack, frame []byte) {
	select {
	case c.queue <- queued{from, frame}:
	default: // as a switch that is too busy
	}
}

func (c *cable) carry() {
	random := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case q := <-c.queue:
			if c.seen != nil {
				c.seen(q.from, q.frame)
			}
			if to := c.ends[q.from]; random.Float64() >= c.loss && to != nil {
				to.to.Deliver(to.port, q.frame)
			}
		case <-c.done:
			return
		}
	}
}

// newStack makes a stack with ports, whose frames go where they are sent to.
func newStack(t *testing.T, mac [6]byte, addr netip.Addr, output func(*Stack, string, []byte), ports ...string) *Stack {
	t.Helper()
	var s *Stack
	s, err := New(Config{MAC: mac, LinkLocal: addr, Output: func(port string, frame []byte) { output(s, port, frame) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, p := range ports {
		if err := s.AddPort(p, 1280); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A pair is a router's stack with the ports p1 and p2, and a host on each; the hosts are twins.
type pair struct {
	router *Stack
	hosts  [2]*Stack
	cables [2]*cable
}

func newPair(t *testing.T, loss float64) *pair {
	p := &pair{cables: [2]*cable{newCable(t, loss), newCable(t, loss)}}
	p.router = newStack(t, routerMAC, routerAddr, func(s *Stack, port string, frame []byte) {
		p.cables[port[1]-'1'].put(s, frame)
	}, "p1", "p2")
	for i, c := range p.cables {
		p.hosts[i] = newStack(t, hostMAC, hostAddr, func(s *Stack, _ string, frame []byte) { c.put(s, frame) }, "eth0")
		c.ends[p.router] = &end{p.hosts[i], "eth0"}
		c.ends[p.hosts[i]] = &end{p.router, []string{"p1", "p2"}[i]}
	}
	return p
}

// dial connects a host with the router, from a port of its own choice or from that one.
func dial(t *testing.T, host *Stack, to, from uint16) *gonet.TCPConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	nic := theNIC
	c, err := gonet.DialTCPWithBind(ctx, host.ports["eth0"].stack,
		tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom16(hostAddr.As16()), Port: from},
		tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom16(routerAddr.As16()), Port: to}, ipv6.ProtocolNumber)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// ethernet puts headers before an IPv6 payload; the checksum at the offset is made, none where it is negative.
func ethernet(from, to [6]byte, src, dst netip.Addr, next, hops uint8, payload []byte, sumAt int) []byte {
	frame := make([]byte, header.EthernetMinimumSize+header.IPv6MinimumSize, header.EthernetMinimumSize+header.IPv6MinimumSize+len(payload))
	header.Ethernet(frame).Encode(&header.EthernetFields{SrcAddr: tcpip.LinkAddress(from[:]), DstAddr: tcpip.LinkAddress(to[:]), Type: header.IPv6ProtocolNumber})
	header.IPv6(frame[14:]).Encode(&header.IPv6Fields{PayloadLength: uint16(len(payload)), TransportProtocol: tcpip.TransportProtocolNumber(next),
		HopLimit: hops, SrcAddr: tcpip.AddrFrom16(src.As16()), DstAddr: tcpip.AddrFrom16(dst.As16())})
	frame = append(frame, payload...)
	if sumAt >= 0 {
		sum := ^sumOf(frame)
		frame[54+sumAt], frame[54+sumAt+1] = byte(sum>>8), byte(sum)
	}
	return frame
}

// sumOf is the sum of pseudo header and payload: 0xffff where the checksum is right.
func sumOf(frame []byte) uint16 {
	ip := header.IPv6(frame[14:])
	n := uint16(len(ip)) - header.IPv6MinimumSize
	return checksum.Checksum(ip[40:], header.PseudoHeaderChecksum(ip.TransportProtocol(), ip.SourceAddress(), ip.DestinationAddress(), n))
}
