package answers

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

const (
	ethernetLen = 14
	ipv6Len     = 40
	icmpLen     = 8
	etherIPv6   = 0x86dd

	echoRequest = 128
	echoReply   = 129

	extHop      = 0
	extRouting  = 43
	extFragment = 44
	extOptions  = 60
	maxExts     = 6
)

// What a packet is of a datagram that was cut.
type fragmentKind uint8

const (
	whole fragmentKind = iota
	firstFragment
	laterFragment
)

// A packet is one of IPv6 in an Ethernet frame; internal/bpf/include/parse.h reads alike.
type packet struct {
	frame    []byte // the last byte is the packet's last
	ip       []byte // frame behind its Ethernet header
	src, dst netip.Addr
	hopLimit uint8
	proto    sid.Proto    // of the transport header, once that is parsed
	fragment fragmentKind // the same
	l4       int          // where it begins in ip
	dport    uint16
	kind     uint8 // ICMPv6
}

// parseNetwork reads the fixed header only. Padding behind the packet is not part of it.
func parseNetwork(frame []byte) (*packet, bool) {
	if len(frame) < ethernetLen+ipv6Len || binary.BigEndian.Uint16(frame[12:]) != etherIPv6 {
		return nil, false
	}
	if says := ethernetLen + ipv6Len + int(binary.BigEndian.Uint16(frame[ethernetLen+4:])); says < len(frame) {
		frame = frame[:says]
	}
	ip := frame[ethernetLen:]
	return &packet{frame: frame, ip: ip, src: netip.AddrFrom16([16]byte(ip[8:24])), dst: netip.AddrFrom16([16]byte(ip[24:40])),
		hopLimit: ip[7], proto: sid.Proto(ip[6]), l4: ipv6Len}, true
}

// skipExtensions moves l4 and proto past the extension headers that hosts send.
func (p *packet) skipExtensions() bool {
	for range maxExts {
		switch p.proto {
		case extHop, extRouting, extFragment, extOptions:
		default:
			return true
		}
		if len(p.ip) < p.l4+8 {
			return false
		}
		head := p.ip[p.l4:]
		if p.proto == extFragment {
			p.fragment = whole
			if where := binary.BigEndian.Uint16(head[2:]); where&0xfff8 != 0 {
				p.fragment = laterFragment
			} else if where&1 != 0 {
				p.fragment = firstFragment
			}
			p.l4 += 8
		} else {
			p.l4 += (int(head[1]) + 1) * 8
		}
		p.proto = sid.Proto(head[0])
		if p.fragment == laterFragment {
			return true
		}
	}
	return false
}

// parseTransport finds the transport header. A later fragment has no ports; unknown protocols have none either.
func (p *packet) parseTransport() bool {
	if leastTransport(p.proto) == 0 && !p.skipExtensions() {
		return false
	}
	if p.fragment == laterFragment {
		return true
	}
	if len(p.ip) < p.l4+leastTransport(p.proto) {
		return leastTransport(p.proto) == 0
	}
	switch p.proto {
	case sid.TCP, sid.UDP:
		p.dport = binary.BigEndian.Uint16(p.ip[p.l4+2:])
	case sid.ICMPv6:
		p.kind = p.ip[p.l4]
	}
	return true
}

// leastTransport is the least header of a transport protocol, 0 of others.
func leastTransport(p sid.Proto) int {
	switch p {
	case sid.TCP:
		return 20
	case sid.UDP, sid.ICMPv6:
		return icmpLen
	}
	return 0
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

// retry is the retry count, docs/protocol.md §3.1.
func (p *packet) retry() uint8 { return p.ip[3] & 3 }

// answerable: RFC 4443 §2.4 (e) forbids errors to multicast and unspecified sources.
func (p *packet) answerable() bool { return !p.src.IsUnspecified() && !p.src.IsMulticast() }

// isError: and errors about errors. The transport must be parsed.
func (p *packet) isError() bool { return p.proto == sid.ICMPv6 && p.kind < echoRequest }

func isSocket(a netip.Addr) bool { return sid.SocketID(sid.Low(a)).Valid() }
