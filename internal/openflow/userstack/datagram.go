package userstack

import (
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

// A Datagram came in by UDP.
type Datagram struct {
	Port string         // of the switch
	From netip.AddrPort // without a zone
	To   netip.Addr
	MAC  [6]byte // that it came from
	Data []byte
}

// HandleUDP calls f for each datagram to a UDP port, from the goroutine that delivered it. Others are refused.
func (s *Stack) HandleUDP(port uint16, f func(Datagram)) { s.udp.Store(port, f) }

// datagram is called by gVisor, for there are no UDP sockets. It reports whether somebody takes the packet.
func (s *Stack) datagram(port string, id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	f, ok := s.udp.Load(id.LocalPort)
	if !ok {
		return false
	}
	length := int(header.UDP(pkt.TransportHeader().Slice()).Length()) - header.UDPMinimumSize
	data := pkt.Data().AsRange().ToSlice()
	if length < 0 || length > len(data) {
		return true
	}
	d := Datagram{Port: port, Data: data[:length],
		From: netip.AddrPortFrom(netip.AddrFrom16(id.RemoteAddress.As16()), id.RemotePort), To: netip.AddrFrom16(id.LocalAddress.As16())}
	copy(d.MAC[:], header.Ethernet(pkt.LinkHeader().Slice()).SourceAddress())
	f.(func(Datagram))(d)
	return true
}

// SendUDP sends a datagram from the link-local address out of a port, to an address on its link or to a
// multicast group, with hop limit 255. Where the hardware address is not known yet it waits in the stack.
func (s *Stack) SendUDP(port string, from uint16, to netip.AddrPort, data []byte) error {
	s.mu.Lock()
	p := s.ports[port]
	s.mu.Unlock()
	if p == nil {
		return fmt.Errorf("userstack: there is no port %s", port)
	}
	if header.IPv6MinimumSize+header.UDPMinimumSize+len(data) > int(p.link.mtu) {
		return fmt.Errorf("userstack: port %s: a datagram of %d bytes does not fit the MTU of %d", port, len(data), p.link.mtu)
	}
	route, err := p.stack.FindRoute(theNIC, tcpip.AddrFrom16(s.cfg.LinkLocal.As16()), tcpip.AddrFrom16(to.Addr().As16()), ipv6.ProtocolNumber, false)
	if err != nil {
		return fmt.Errorf("userstack: port %s: send to %v: %v", port, to, err)
	}
	defer route.Release()
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: header.UDPMinimumSize + int(route.MaxHeaderLength()), Payload: buffer.MakeWithData(data)})
	defer pkt.DecRef()
	length := uint16(header.UDPMinimumSize + len(data))
	h := header.UDP(pkt.TransportHeader().Push(header.UDPMinimumSize))
	pkt.TransportProtocolNumber = udp.ProtocolNumber
	h.Encode(&header.UDPFields{SrcPort: from, DstPort: to.Port(), Length: length})
	sum := ^h.CalculateChecksum(checksum.Combine(route.PseudoHeaderChecksum(udp.ProtocolNumber, length), checksum.Checksum(data, 0)))
	if sum == 0 {
		sum = 0xffff // 0 would say that there is none
	}
	h.SetChecksum(sum)
	if err := route.WritePacket(stack.NetworkHeaderParams{Protocol: udp.ProtocolNumber, TTL: 255}, pkt); err != nil {
		return fmt.Errorf("userstack: port %s: send to %v: %v", port, to, err)
	}
	return nil
}
