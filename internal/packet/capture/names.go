package capture

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Names are what hosts and the service are called.
type Names struct {
	Service string
	Hosts   map[sid.Locator]string
}

// Line tells a packet as one line, names beside addresses:
//
//	12:00:01.123456 > c1:41234 > web@s2:80  TCP SYN seq 1 len 0  (fd5d:0:1:101:8000::1 > fd5c::1:0:0:1:0)
func (n Names) Line(p Packet, h Headers, v Verdict) string {
	var b strings.Builder
	b.WriteString(p.At.Format("15:04:05.000000 "))
	b.WriteString(map[bool]string{true: "> ", false: "< "}[p.Out])
	fmt.Fprintf(&b, "%s > %s  %s  (%v > %v)", n.end(h.Src, h.SrcPort, v.Src), n.end(h.Dst, h.DstPort, v.Dst), what(h, v), h.Src, h.Dst)
	return b.String()
}

// Of is what an address is called, as a hosts file has it: no port.
func (n Names) Of(a netip.Addr, s Side) string { return n.end(a, 0, s) }

func (n Names) end(a netip.Addr, port uint16, s Side) string {
	at := ""
	if port != 0 {
		at = ":" + strconv.Itoa(int(port))
	}
	host, ok := n.Hosts[sid.LocatorOf(a)]
	if !ok {
		host = sid.LocatorOf(a).String()
	}
	switch {
	case s.Of == Name:
		return n.Service + at
	case s.Of == Chosen, s.Of == Bound && s.Server:
		return n.Service + "@" + host + at
	case s.Of == Bound, s.Of == Host:
		return host + at
	case ok:
		return host + at
	}
	return a.String() + at
}

// what says what the packet does.
func what(h Headers, v Verdict) string {
	text := ""
	switch {
	case h.Proto == sid.TCP:
		text = fmt.Sprintf("TCP %s seq %d ack %d len %d", flags(h.Flags), h.Seq, h.Ack, h.Payload)
	case message(h) != nil:
		text = told(message(h))
	case h.Proto == sid.UDP:
		text = fmt.Sprintf("UDP len %d", h.Payload)
	case h.Proto == sid.ICMPv6:
		text = icmp(h)
	case h.Proto == 0 && h.Fragment:
		text = fmt.Sprintf("fragment len %d", h.Payload)
	default:
		text = fmt.Sprintf("protocol %d len %d", h.Proto, h.Payload)
	}
	if h.Retry != 0 && (v.Dst.Of == Name || v.Dst.Of == Chosen) {
		text += fmt.Sprintf(" retry %d", h.Retry)
	}
	return text
}

// told says what a message is about.
func told(m wire.Message) string {
	switch m := m.(type) {
	case wire.Renegotiate:
		return fmt.Sprintf("%v of %d flows, %v to %v", m.Kind, len(m.Claims), m.Old, m.Locator)
	case wire.Fail:
		return fmt.Sprintf("FAIL %v", m.Reason)
	case wire.FlowFail:
		return fmt.Sprintf("FLOW-FAIL of %d flows: %v", len(m.Flows), m.Reason)
	}
	return m.Type().String()
}

var icmpNames = map[uint8]string{1: "unreachable", 2: "too big", 3: "time exceeded", 4: "parameter problem", 128: "echo", 129: "echo reply"}

func icmp(h Headers) string {
	name, ok := icmpNames[h.Type]
	if !ok {
		name = fmt.Sprintf("type %d", h.Type)
	}
	text := fmt.Sprintf("ICMPv6 %s", name)
	if h.Type < 128 {
		text += fmt.Sprintf(" code %d", h.Code)
	}
	if q, ok := h.quoted(); ok {
		text += fmt.Sprintf(" about a packet to %v", netip.AddrPortFrom(q.Dst, q.DstPort))
	}
	return text
}
