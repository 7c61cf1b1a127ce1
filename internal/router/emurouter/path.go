package emurouter

import (
	"encoding/binary"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fib"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/router/answers"
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

	sources []map[sid.Locator]struct{} // by port: the locators of hosts that are or were there
	leads   []bool                     // by port: a router is there, and packets from anywhere come
	filter  bool                       // the sources are known
	foreign uint64                     // packets that were dropped by them

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
		sources: make([]map[sid.Locator]struct{}, len(cfg.Ports)), leads: make([]bool, len(cfg.Ports)),
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
	named := uint32(hi>>32) == p.services
	if p.filter && (named || hi&^hostBits == p.as) && !p.lets(int(one.Port), r.Bytes(one), named) {
		p.foreign += uint64(one.Count())
		one.Port = emu.Drop
		return
	}
	switch {
	case named:
		p.first(r, one, hi, lo)
	case hi&^hostBits != p.as:
		p.forward(r, one, hi, lo)
	case hi == uint64(p.own) && lo == sid.HostSuffix:
		p.addressed(r, one)
	case hi == p.as && !sid.SocketID(lo).Valid():
		p.first(r, one, hi, lo)
	case p.answers.Left(sid.Locator(hi)), p.answers.Unheard(sid.Locator(hi), lo):
		p.decide(r, one, answers.ByAddress)
	default:
		p.forward(r, one, hi, lo)
	}
}

func destination(ip []byte) (hi, lo uint64) {
	return binary.BigEndian.Uint64(ip[24:]), binary.BigEndian.Uint64(ip[32:])
}

// source is the upper half of the address that a packet is from.
func source(ip []byte) uint64 { return binary.BigEndian.Uint64(ip[8:]) }

// lets reports whether a packet may come in at the port, docs/protocol.md §5.4: from where a host is or was that is there,
// from another network, and from anywhere where a router is there. A first packet that a host returns (§3.3) has its
// client's address: that host is told by its flow label, and has to be there.
func (p *path) lets(port int, ip []byte, named bool) bool {
	from := source(ip)
	if from&^hostBits != p.as || p.leads[port] {
		return true
	}
	_, ok := p.sources[port][sid.Locator(from)]
	if label := sid.LabelOf(ip); !ok && named && label.Retry() > 0 {
		_, ok = p.sources[port][sid.Locator(p.as|uint64(label.Refuser()))]
	}
	return ok
}

// counts are what became of packets that were not simply forwarded.
func (p *path) counts() map[string]uint64 {
	all := p.answers.Counts()
	if p.foreign > 0 {
		all["dropped_source"] = p.foreign
	}
	return all
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
