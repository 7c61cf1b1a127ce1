package underlay

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// Trips measures the round trips to addresses by one ping each, for as long as wait. Who does not answer counts as
// that far: networks that drop pings are not rare, and there is little to choose between those behind them.
func Trips(to []netip.Addr, wait time.Duration) map[netip.Addr]time.Duration {
	trips := map[netip.Addr]time.Duration{}
	for _, a := range to {
		trips[a] = wait
	}
	if len(trips) < 2 {
		return trips
	}
	four, six := pinged(trips, netip.Addr.Is4, "ip4:icmp", ipv4.ICMPTypeEcho, 1, wait), pinged(trips, netip.Addr.Is6, "ip6:ipv6-icmp", ipv6.ICMPTypeEchoRequest, 58, wait)
	for _, answers := range []<-chan answer{four, six} {
		for a := range answers {
			trips[a.from] = a.trip
		}
	}
	return trips
}

type answer struct {
	from netip.Addr
	trip time.Duration
}

// pinged pings the addresses of one family; the channel ends with the wait.
func pinged(to map[netip.Addr]time.Duration, family func(netip.Addr) bool, network string, echo icmp.Type, protocol int, wait time.Duration) <-chan answer {
	answers := make(chan answer, len(to))
	var of []netip.Addr
	for a := range to {
		if family(a) {
			of = append(of, a)
		}
	}
	conn, err := net.ListenPacket(network, "")
	if err != nil || len(of) == 0 {
		close(answers)
		return answers
	}
	id, began := int(rand.Uint32()&0xffff), time.Now()
	for i, a := range of {
		m := icmp.Message{Type: echo, Body: &icmp.Echo{ID: id, Seq: i, Data: make([]byte, 8)}}
		if b, err := m.Marshal(nil); err == nil {
			conn.WriteTo(b, &net.IPAddr{IP: a.AsSlice()}) //nolint:errcheck // then there is no answer
		}
	}
	go func() { // ends with the deadline
		defer close(answers)
		defer conn.Close()
		conn.SetReadDeadline(began.Add(wait))
		buf := make([]byte, 1500)
		for heard := 0; heard < len(of); {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			m, err := icmp.ParseMessage(protocol, buf[:n])
			if err != nil || m.Type != ipv4.ICMPTypeEchoReply && m.Type != ipv6.ICMPTypeEchoReply {
				continue
			}
			if e, ok := m.Body.(*icmp.Echo); ok && e.ID == id && e.Seq < len(of) {
				heard++
				answers <- answer{of[e.Seq], time.Since(began)}
			}
		}
	}()
	return answers
}
