package emurouter

import (
	"bytes"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/router/answers"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// zero is the network's time 0 for answers, which measure spans alone.
var zero = time.Unix(0, 0)

// decide leaves a packet to the rules: it goes on changed, is answered or dropped.
func (p *path) decide(r *emu.Router, one *emu.Packet, class answers.Class) {
	ip, ok := r.Edit(one) // also what is a part of a train is whole now, and its hop limit in place
	if !ok {
		one.Port = emu.Drop
		return
	}
	got := p.answers.Decide(zero.Add(r.Now()), class, r.Frame(one))
	if got.To.IsValid() {
		got.Rewrite(ip, r.Checksum(one).Partial)
		r.Reparse(one)
		hi, lo := destination(ip)
		p.forward(r, one, hi, lo)
		return
	}
	p.reply(r, one.Port, got)
	one.Port = emu.Drop
}

func (p *path) tooBig(r *emu.Router, one *emu.Packet, mtu int) {
	if _, ok := r.Edit(one); ok {
		p.reply(r, one.Port, p.answers.TooBig(zero.Add(r.Now()), r.Frame(one), mtu))
	}
	one.Port = emu.Drop
}

// reply sends an answer, by the port that the packet came by or by the way to its sender.
func (p *path) reply(r *emu.Router, port uint16, got answers.Answer) {
	if got.Frame == nil {
		return
	}
	reply, ok := r.NewFrame(got.Frame)
	if !ok {
		return
	}
	if got.Back {
		reply.Routed()
		r.Send(reply, port)
		return
	}
	p.send(r, reply)
}

// send lets a packet of the router's own go by the way to its destination, if there is one.
func (p *path) send(r *emu.Router, one emu.Packet) {
	hi, lo := destination(r.Bytes(&one))
	port := int(p.ways.Lookup6(hi, lo)) - int(firstPort)
	if port < 0 || !p.up[port] {
		r.Release(one)
		return
	}
	one.Routed()
	r.Send(one, uint16(port))
}

// control hands what stays on a link to the router's own stack.
func (p *path) control(r *emu.Router, one *emu.Packet) {
	if _, ok := r.Edit(one); ok && int(one.Port) < len(p.up) && one.IPv6() {
		if !p.mail.put(event{frame: bytes.Clone(r.Frame(one)), port: int(one.Port)}) {
			p.unheard++
		}
	}
	one.Port = emu.Drop
}

// addressed takes a packet to the router itself: an answer to a probe, or one that is answered.
func (p *path) addressed(r *emu.Router, one *emu.Packet) {
	from, body, ok := message(r.Bytes(one))
	if !ok {
		p.decide(r, one, answers.Addressed)
		return
	}
	one.Port = emu.Drop
	t, h, err := wire.ParseHeader(body)
	if err != nil || t != wire.TypeProbeAck || sid.Low(from) != sid.HostSuffix {
		return
	}
	p.found(p.probes.Answered(sid.LocatorOf(from), h.Nonce))
}
