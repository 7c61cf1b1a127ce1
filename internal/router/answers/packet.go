package answers

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

const (
	ethernetLen = header.EthernetLen
	ipv6Len     = header.IPv6Len
	icmpLen     = header.ICMPv6Len

	echoRequest = 128
	echoReply   = 129
)

// What a packet is of a datagram that was cut.
const (
	whole         = header.Whole
	laterFragment = header.Later
)

// A packet is one of IPv6 in an Ethernet frame; internal/bpf/include/parse.h reads alike.
type packet struct {
	frame    []byte      // the last byte is the packet's last
	ip       header.IPv6 // frame behind its Ethernet header
	src, dst netip.Addr
	hopLimit uint8
	proto    sid.Proto    // of the transport header, once that is parsed
	fragment header.Piece // the same
	l4       int          // where it begins in ip
	dport    uint16
	kind     uint8 // ICMPv6
	returned bool  // by a host: its sender is elsewhere than where it came from
}

// parseNetwork reads the fixed header only. Padding behind the packet is not part of it.
func parseNetwork(frame []byte) (*packet, bool) {
	ip, ok := header.InFrame(frame)
	if !ok {
		return nil, false
	}
	if says := ip.Says(); says < len(ip) {
		frame, ip = frame[:ethernetLen+says], ip[:says]
	}
	return &packet{frame: frame, ip: ip, src: ip.Src(), dst: ip.Dst(), hopLimit: ip.Hops(), proto: sid.Proto(ip.Next()), l4: ipv6Len}, true
}

// parseTransport finds the transport header. A later fragment has no ports; unknown protocols have none either.
func (p *packet) parseTransport() bool {
	u, ok := header.Above(p.ip, header.Most)
	if !ok {
		return false
	}
	p.proto, p.l4, p.fragment = sid.Proto(u.Proto), u.At, u.Piece
	if p.fragment == laterFragment {
		return true
	}
	least := header.Least(u.Proto)
	if len(p.ip) < p.l4+least {
		return least == 0
	}
	switch p.proto {
	case sid.TCP, sid.UDP:
		p.dport = binary.BigEndian.Uint16(p.ip[p.l4+2:])
	case sid.ICMPv6:
		p.kind = p.ip[p.l4]
	}
	return true
}

// asksFor is the entry that the packet uses. An echo has no port. Nor has a later fragment, and the first one
// must meet the same instance, so all fragments use an entry for any port: UDP has one of its own.
func (p *packet) asksFor() (sid.Proto, uint16) {
	switch {
	case p.proto == sid.ICMPv6 || p.fragment != whole && p.proto != sid.UDP:
		return 0, 0
	case p.fragment != whole:
		return sid.UDP, 0
	}
	return p.proto, p.dport
}

// label is the flow label, docs/protocol.md §3.1.
func (p *packet) label() sid.Label { return sid.LabelOf(p.ip) }

// answerable: RFC 4443 §2.4 (e) forbids errors to multicast and unspecified sources.
func (p *packet) answerable() bool { return !p.src.IsUnspecified() && !p.src.IsMulticast() }

// isError: and errors about errors. The transport must be parsed.
func (p *packet) isError() bool { return p.proto == sid.ICMPv6 && p.kind < echoRequest }

func isSocket(a netip.Addr) bool { return sid.SocketID(sid.Low(a)).Valid() }
