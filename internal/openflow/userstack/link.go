package userstack

import (
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A link is the Ethernet of one port, as gVisor sees it.
type link struct {
	name   string
	mtu    uint32
	mac    [6]byte
	output func(port string, frame []byte)

	mu sync.RWMutex
	up stack.NetworkDispatcher // nil while there is no interface
}

func newLink(name string, mtu uint32, cfg Config) *link {
	return &link{name: name, mtu: mtu, mac: cfg.MAC, output: cfg.Output}
}

// deliver takes what is for us, or for many; what comes from ourselves is a loop in the network.
func (l *link) deliver(frame []byte) {
	if len(frame) < header.EthernetMinimumSize+header.IPv6MinimumSize || len(frame) > header.EthernetMinimumSize+0xffff {
		return
	}
	if header.IPv6(frame[header.EthernetMinimumSize:]).NextHeader() == uint8(header.IPv6FragmentExtHdrIdentifier) {
		return // nobody has a reason to, and parts would have to be kept
	}
	eth := header.Ethernet(frame)
	to, from, mine := eth.DestinationAddress(), eth.SourceAddress(), l.LinkAddress()
	kind := tcpip.PacketHost
	switch {
	case eth.Type() != header.IPv6ProtocolNumber || from == mine || header.IsMulticastEthernetAddress(from):
		return
	case to != mine && (frame[0] != 0x33 || frame[1] != 0x33):
		return
	case to != mine:
		kind = tcpip.PacketMulticast
	}
	l.mu.RLock()
	up := l.up
	l.mu.RUnlock()
	if up == nil {
		return
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)}) // a copy
	defer pkt.DecRef()
	if _, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize); !ok {
		return
	}
	pkt.PktType = kind
	up.DeliverNetworkPacket(ipv6.ProtocolNumber, pkt)
}

// WritePackets implements stack.LinkWriter.
func (l *link) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for _, pkt := range pkts.AsSlice() {
		frame := make([]byte, 0, pkt.Size())
		for _, part := range pkt.AsSlices() {
			frame = append(frame, part...)
		}
		l.output(l.name, frame)
	}
	return pkts.Len(), nil
}

// AddHeader implements stack.NetworkLinkEndpoint.
func (l *link) AddHeader(pkt *stack.PacketBuffer) {
	header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize)).Encode(&header.EthernetFields{
		SrcAddr: l.LinkAddress(), DstAddr: pkt.EgressRoute.RemoteLinkAddress, Type: pkt.NetworkProtocolNumber})
}

// ParseHeader implements stack.NetworkLinkEndpoint; deliver has done it.
func (l *link) ParseHeader(*stack.PacketBuffer) bool { return true }

// Capabilities implements stack.NetworkLinkEndpoint: checksums of what comes in are not looked at, those of what
// goes out are made.
func (l *link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload | stack.CapabilityResolutionRequired
}

// LinkAddress implements stack.NetworkLinkEndpoint.
func (l *link) LinkAddress() tcpip.LinkAddress { return tcpip.LinkAddress(l.mac[:]) }

// SetLinkAddress implements stack.NetworkLinkEndpoint; nobody calls it.
func (l *link) SetLinkAddress(tcpip.LinkAddress) {}

// MTU implements stack.NetworkLinkEndpoint.
func (l *link) MTU() uint32 { return l.mtu }

// SetMTU implements stack.NetworkLinkEndpoint; nobody calls it.
func (l *link) SetMTU(uint32) {}

// MaxHeaderLength implements stack.NetworkLinkEndpoint.
func (l *link) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// ARPHardwareType implements stack.NetworkLinkEndpoint.
func (l *link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// Attach implements stack.NetworkLinkEndpoint.
func (l *link) Attach(up stack.NetworkDispatcher) {
	l.mu.Lock()
	l.up = up
	l.mu.Unlock()
}

// IsAttached implements stack.NetworkLinkEndpoint.
func (l *link) IsAttached() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.up != nil
}

// Wait implements stack.NetworkLinkEndpoint: there is no goroutine.
func (l *link) Wait() {}

// Close implements stack.NetworkLinkEndpoint.
func (l *link) Close() {}

// SetOnCloseAction implements stack.NetworkLinkEndpoint.
func (l *link) SetOnCloseAction(func()) {}
