package emurouter

import (
	"encoding/binary"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fib"
	"scaffold.dev/scaffold/internal/answers"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/sid"
)

// A path decides about packets. The engine's thread owns it.
type path struct {
	cfg  *Config
	mail *mailbox

	space    sid.Space
	services uint32      // the prefix of services
	as       uint64      // upper half of an address of this AS, host bits zero
	own      sid.Locator // 0 before the first Joined
	answers  *answers.Answers
	ways     *fib.Table // to ports, by their numbers from firstPort on
	up       []bool     // by port, as last told
	told     bool       // up has been

	probes    *liveness.Probes
	every     time.Duration
	unheard   uint64 // frames to the router itself for which there was no room
	forwarded uint64
}

// firstPort is the hop of port 0: smaller ones say other things.
const firstPort fib.Hop = 16

// probesOff is between looks at the ports before the controller has said how often to probe.
const probesOff = 25 * time.Millisecond

func newPath(cfg *Config) *path {
	return &path{cfg: cfg, mail: newMailbox(), answers: answers.New(), ways: fib.New(), up: make([]bool, len(cfg.Ports)),
		probes: liveness.New(liveness.Limits{}), every: probesOff}
}

// place says where the router is in the network.
func (p *path) place(space sid.Space, own sid.Locator) {
	p.space, p.own = space, own
	p.services = uint32(uint64(sid.LocatorOf(space.Services.Addr())) >> 32)
	p.as = uint64(space.Locator(0))
	p.answers.SetRouter(space, own, p.cfg.Service)
}

// hostBits are those of an upper half that tell hosts of one AS apart.
const hostBits = 0xffff

// packet decides where one goes.
func (p *path) packet(r *emu.Router, one *emu.Packet) {
	if one.Near() {
		p.control(r, one)
		return
	}
	if !one.IPv6() || p.own == 0 {
		one.Port = emu.Drop // of another network, or before we are anybody
		return
	}
	hi, lo := destination(r.Bytes(one))
	switch {
	case uint32(hi>>32) == p.services:
		p.first(r, one, hi, lo)
	case hi&^hostBits != p.as:
		p.forward(r, one, hi, lo)
	case hi == uint64(p.own) && lo == sid.HostSuffix:
		p.addressed(r, one)
	case hi == p.as && !sid.SocketID(lo).Valid():
		p.first(r, one, hi, lo)
	case p.answers.Left(sid.Locator(hi)):
		p.decide(r, one, answers.ByAddress)
	default:
		p.forward(r, one, hi, lo)
	}
}

func destination(ip []byte) (hi, lo uint64) {
	return binary.BigEndian.Uint64(ip[24:]), binary.BigEndian.Uint64(ip[32:])
}

// first sees to a packet for a name.
func (p *path) first(r *emu.Router, one *emu.Packet, hi, lo uint64) {
	if p.cfg.Service {
		p.decide(r, one, answers.ByAddress)
		return
	}
	p.forward(r, one, hi, lo)
}

// forward sends a packet where the table says.
func (p *path) forward(r *emu.Router, one *emu.Packet, hi, lo uint64) {
	port := int(p.ways.Lookup6(hi, lo)) - int(firstPort)
	switch {
	case port < 0 || !p.up[port]:
		p.decide(r, one, answers.NoRoute)
	case one.Hop <= 1:
		p.decide(r, one, answers.HopLimit)
	case one.Len() > p.cfg.Ports[port].MTU:
		p.tooBig(r, one, p.cfg.Ports[port].MTU)
	default:
		p.forwarded += uint64(one.Count())
		one.Hop--
		one.Port = uint16(port)
		one.Routed()
	}
}
