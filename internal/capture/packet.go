// Package capture watches the packets of a service's flows as they are on the wire, and says whose they are: a packet
// between two locators and socketIDs says neither which service nor which hosts it belongs to.
package capture

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"time"

	"scaffold.dev/scaffold/sid"
)

// A Packet is an IPv6 packet that an interface sent or received.
type Packet struct {
	At     time.Time
	Out    bool   // sent
	Data   []byte // from the IPv6 header on, perhaps its beginning only
	Length int    // of the whole, in bytes
}

// Headers are what of a packet its line tells.
type Headers struct {
	Src, Dst         netip.Addr
	Proto            sid.Proto // of the payload; 0 for a later fragment
	SrcPort, DstPort uint16
	Flags            uint8 // of TCP
	Seq, Ack         uint32
	Type, Code       uint8 // of ICMPv6
	Payload          int   // bytes behind the transport's header
	Body             []byte
	Retry            uint8 // of a first packet
	Fragment         bool  // one of several
}

// Flags of TCP in the order in which they are written.
var flagNames = []struct {
	bit  uint8
	name string
}{{0x02, "SYN"}, {0x10, "ACK"}, {0x08, "PSH"}, {0x01, "FIN"}, {0x04, "RST"}, {0x20, "URG"}, {0x40, "ECE"}, {0x80, "CWR"}}

func flags(f uint8) string {
	var names []string
	for _, x := range flagNames {
		if f&x.bit != 0 {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, "-")
}

const (
	ipHeader       = 40
	fragmentHeader = 44
	udpHeader      = 8
)

// Parse reads the headers; ok is false for what is no IPv6 packet or breaks off before its transport's header does.
func Parse(p Packet) (h Headers, ok bool) {
	b := p.Data
	if len(b) < ipHeader || b[0]>>4 != 6 {
		return h, false
	}
	h.Src, h.Dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	h.Retry = b[3] & 3
	next, rest, behind := b[6], b[ipHeader:], p.Length-ipHeader
	if next == fragmentHeader {
		if len(rest) < 8 {
			return h, false
		}
		h.Fragment = true
		if binary.BigEndian.Uint16(rest[2:])>>3 != 0 {
			h.Payload = behind - 8
			return h, true // a later one: no ports
		}
		next, rest, behind = rest[0], rest[8:], behind-8
	}
	h.Proto = sid.Proto(next)
	return h, h.transport(rest, behind)
}

func (h *Headers) transport(b []byte, length int) bool {
	header := 0
	switch h.Proto {
	case sid.TCP:
		if len(b) < 20 {
			return false
		}
		header = int(b[12]>>4) * 4
		h.Flags, h.Seq, h.Ack = b[13], binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	case sid.UDP:
		header = udpHeader
	case sid.ICMPv6:
		header = udpHeader
	default:
		h.Payload = length
		return true
	}
	if len(b) < header || header < udpHeader {
		return false
	}
	if h.Proto == sid.ICMPv6 {
		h.Type, h.Code = b[0], b[1]
	} else {
		h.SrcPort, h.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	}
	h.Payload, h.Body = length-header, b[header:]
	return true
}

// quoted is the packet that an ICMPv6 error is about.
func (h *Headers) quoted() (Headers, bool) {
	if h.Proto != sid.ICMPv6 || h.Type >= 128 || len(h.Body) < ipHeader {
		return Headers{}, false
	}
	q, ok := Parse(Packet{Data: h.Body, Length: len(h.Body)})
	return q, ok || q.Src.IsValid()
}
