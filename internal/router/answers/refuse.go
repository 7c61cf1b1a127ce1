package answers

import (
	"encoding/binary"
	"time"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// ICMPv6 of RFC 4443, and the codes of docs/protocol.md §3.5.
const (
	icmpUnreachable = 1
	icmpTooBig      = 2
	icmpExceeded    = 3

	unreachableNoRoute    = 0
	unreachableUnknown    = 0
	unreachableForbidden  = 1
	unreachableNoInstance = 3
	unreachableNoPort     = 4
)

// maxQuote is how much of a packet an answer quotes: enough for headers and every TCP option.
const maxQuote = 128

// answerHops is the hop limit of what the router says itself.
const answerHops = 64

// refuse answers a first packet with destination unreachable.
func (a *Answers) refuse(now time.Time, p *packet, code uint8, reason string) Answer {
	return a.complain(now, p, icmpUnreachable, code, reason)
}

// expire answers a packet that has no hop left.
func (a *Answers) expire(now time.Time, p *packet) Answer {
	if !p.parseTransport() || p.isError() {
		return a.drop("dropped_malformed")
	}
	return a.complain(now, p, icmpExceeded, 0, "expired_hop_limit")
}

// TooBig answers an Ethernet frame with a packet that does not fit the port that it was to leave by.
func (a *Answers) TooBig(now time.Time, frame []byte, mtu int) Answer {
	p, ok := parseNetwork(frame)
	if !ok {
		return Answer{}
	}
	if !p.parseTransport() || p.isError() {
		return a.drop("dropped_malformed")
	}
	return a.complainWith(now, p, icmpTooBig, 0, uint32(mtu), "refused_too_big")
}

// noRoute answers a packet for an address of the network at which nothing is.
func (a *Answers) noRoute(now time.Time, p *packet) Answer {
	if !p.parseTransport() || p.isError() {
		return a.drop("dropped_malformed")
	}
	return a.complain(now, p, icmpUnreachable, unreachableNoRoute, "refused_no_route")
}

func (a *Answers) complain(now time.Time, p *packet, kind, code uint8, reason string) Answer {
	return a.complainWith(now, p, kind, code, 0, reason)
}

// complainWith puts a word into the part that most errors leave empty.
func (a *Answers) complainWith(now time.Time, p *packet, kind, code uint8, word uint32, reason string) Answer {
	if !p.answerable() {
		return a.drop("dropped_malformed")
	}
	if !a.refusals.AllowN(now, 1) {
		return a.drop("dropped_refusal_limit")
	}
	a.counts[reason]++
	quote := p.ip[:min(len(p.ip), maxQuote)&^3]
	body := binary.BigEndian.AppendUint32(append(make([]byte, 0, icmpLen+maxQuote), kind, code, 0, 0), word)
	frame := a.turned(p, sid.ICMPv6, append(body, quote...))
	if p.returned && kind != icmpTooBig {
		copy(frame, p.frame[:12]) // to the router, whose tables know the way to the sender: nobody else's frames go through them
		return Answer{Frame: frame}
	}
	return Answer{Frame: frame, Back: kind != icmpTooBig}
}

// fail tells the sender of a flow that nobody is any more where it sends to, docs/protocol.md §4.
func (a *Answers) fail(now time.Time, p *packet) Answer {
	if !p.parseTransport() {
		return a.drop("dropped_malformed")
	}
	if a.told.lately(now, p.src) || !a.fails.AllowN(now, 1) {
		return a.drop("dropped_gone_limit")
	}
	a.counts["answered_gone"]++
	quote := make([]byte, max(wire.MinQuote, min(len(p.ip), maxQuote)&^3))
	copy(quote, p.ip)
	said := wire.Fail{Reason: wire.HostGone, Quote: quote}.Append(nil)
	body := append(header.AppendUDP(nil, sid.Port, sid.Port, len(said)), said...)
	return Answer{Frame: a.turned(p, sid.UDP, body), Back: true}
}

// addressed answers what came to the router's own address: a ping, or a call to a port at which nobody is.
func (a *Answers) addressed(now time.Time, p *packet) Answer {
	if !p.parseTransport() || p.fragment != whole || !p.complete() {
		return a.drop("dropped_malformed")
	}
	switch {
	case p.proto == sid.TCP || p.proto == sid.UDP:
		return a.refuse(now, p, unreachableNoPort, "refused_not_served")
	case p.proto != sid.ICMPv6 || p.kind != echoRequest:
		return a.drop("dropped_icmp")
	case !p.answerable():
		return a.drop("dropped_malformed")
	case !a.refusals.AllowN(now, 1):
		return a.drop("dropped_refusal_limit")
	}
	a.counts["answered_echo"]++
	body := append([]byte{echoReply, 0, 0, 0}, p.ip[p.l4+4:]...)
	return Answer{Frame: a.turned(p, sid.ICMPv6, body), Back: true}
}

// turned is a packet from the router to the sender of another one, in that one's frame turned around.
func (a *Answers) turned(p *packet, proto sid.Proto, body []byte) []byte {
	frame := make([]byte, 0, ethernetLen+ipv6Len+len(body))
	frame = append(append(append(frame, p.frame[6:12]...), p.frame[:6]...), p.frame[12:ethernetLen]...)
	frame = append(header.AppendIPv6(frame, a.own.Host(), p.src, uint8(proto), answerHops, len(body)), body...)
	header.Seal(frame[ethernetLen:])
	return frame
}
