// Package capture watches the packets of a service's flows as they are on the wire, and says whose they are: a packet
// between two locators and socketIDs says neither which service nor which hosts it belongs to.
package capture

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/packet/header"
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

// Parse reads the headers; ok is false for what is no IPv6 packet or breaks off before its transport's header does.
func Parse(p Packet) (h Headers, ok bool) {
	if len(p.Data) < header.IPv6Len || p.Data[0]>>4 != 6 {
		return h, false
	}
	ip := header.IPv6(p.Data)
	h.Src, h.Dst = ip.Src(), ip.Dst()
	h.Retry = ip[3] & 15
	u, ok := header.Above(ip, header.Most)
	if !ok || len(ip) < u.At {
		return h, false
	}
	h.Fragment = u.Piece != header.Whole
	if u.Piece == header.Later {
		h.Payload = p.Length - u.At
		return h, true // no ports
	}
	h.Proto = sid.Proto(u.Proto)
	return h, h.transport(ip[u.At:], p.Length-u.At)
}

func (h *Headers) transport(b []byte, length int) bool {
	least := header.Least(uint8(h.Proto))
	if least == 0 {
		h.Payload = length
		return true
	}
	if len(b) < least {
		return false
	}
	head := least
	if h.Proto == sid.TCP {
		head = int(b[12]>>4) * 4
		h.Flags, h.Seq, h.Ack = b[13], binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	}
	if len(b) < head || head < header.UDPLen {
		return false
	}
	if h.Proto == sid.ICMPv6 {
		h.Type, h.Code = b[0], b[1]
	} else {
		h.SrcPort, h.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	}
	h.Payload, h.Body = length-head, b[head:]
	return true
}

// quoted is the packet that an ICMPv6 error is about.
func (h *Headers) quoted() (Headers, bool) {
	if h.Proto != sid.ICMPv6 || h.Type >= 128 || len(h.Body) < header.IPv6Len {
		return Headers{}, false
	}
	q, ok := Parse(Packet{Data: h.Body, Length: len(h.Body)})
	return q, ok || q.Src.IsValid()
}
