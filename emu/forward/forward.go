package forward

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fib"
)

// A Forwarder is the program of one router. Its methods are for the router's thread: before the network runs, or
// inside [emu.Net.Do].
type Forwarder struct {
	config Config
	router *emu.Router // nil before the first packet
	ports  []port
	strict bool // at some ports frames may be for others

	table *fib.Table
	adjacencies
	salt uint64

	hops []fib.Hop // by class; nil for looking the table up
	membership

	own    map[netip.Addr]bool
	fixed  map[netip.Prefix]fib.Hop // of the router's addresses and ports
	always []fib.Route              // the same, sorted
	hidden map[netip.Prefix]fib.Hop // of routes of the same prefixes, which do not count

	neighbours neighbours
	bucket     bucket
	asked      netip.Addr // by the handler lookup
	identity   uint16     // of the last IPv4 packet made
	scratch    [maxMade]byte
	search     search
	counters   Counters
}

// New returns the program of a router without routes but those of its own addresses and the prefixes of its ports.
func New(c Config) (*Forwarder, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	f := &Forwarder{
		config: c, table: fib.New(), adjacencies: newAdjacencies(), own: map[netip.Addr]bool{},
		fixed: map[netip.Prefix]fib.Hop{}, hidden: map[netip.Prefix]fib.Hop{}, neighbours: newNeighbours(),
	}
	f.bucket.set(c.ICMPRate)
	return f, f.fix()
}

// Forwarding is the forwarder itself: a program that embeds one, to do more with what it forwards, has this method too
// and takes part in the classes of all.
func (f *Forwarder) Forwarding() *Forwarder { return f }

// of is the forwarder of a program, nil for one that has none.
func of(p emu.Program) *Forwarder {
	if has, ok := p.(interface{ Forwarding() *Forwarder }); ok {
		return has.Forwarding()
	}
	return nil
}

// Config is what the forwarder was made from.
func (f *Forwarder) Config() Config { return f.config }

// prepare looks at the router and its ports.
func (f *Forwarder) prepare(r *emu.Router) {
	f.router, f.strict = r, false
	salt := f.config.Salt
	if salt == 0 {
		salt = uint64(r.Number())
	}
	f.salt = mum(salt*0x9e3779b97f4a7c15, salt) // or routers with numbers that are near choose alike
	f.ports = nil
	for _, p := range r.Ports() {
		f.ports = append(f.ports, f.portOf(r, p))
		f.strict = f.strict || f.ports[p.Number].lan
	}
	f.connect()
}

// Process forwards packets.
func (f *Forwarder) Process(r *emu.Router, batch []emu.Packet) {
	if f.router != r {
		f.prepare(r)
	}
	for len(batch) > 0 {
		n := min(burst, len(batch))
		f.some(batch[:n])
		batch = batch[n:]
	}
}

func (f *Forwarder) some(batch []emu.Packet) {
	switch {
	case f.strict:
		for i := range batch {
			f.one(&batch[i])
		}
	case f.hops == nil:
		f.byTable(batch)
	default:
		f.byClass(batch)
	}
}

// one forwards any packet.
func (f *Forwarder) one(p *emu.Packet) {
	if f.strict && f.foreign(p) {
		return
	}
	if !p.Fast() {
		f.slow(p)
		return
	}
	h := fib.Again
	if c := int(p.Class); c < len(f.hops) {
		h = f.hops[c]
	}
	if h == fib.Again {
		h = f.lookup(f.router, p)
	}
	a := &f.all[h]
	if !a.pass(p) {
		f.onward(p, a)
	}
}

// Wake looks after neighbours.
func (f *Forwarder) Wake(r *emu.Router, now time.Duration) time.Duration {
	if f.router != r {
		f.prepare(r)
	}
	return f.tend(now)
}

// lookup is the hop of a packet that is not near and has no class.
func (f *Forwarder) lookup(r *emu.Router, p *emu.Packet) fib.Hop {
	b := r.Bytes(p)
	if !p.IPv6() {
		if martian4(b[12]) || martian4(b[16]) {
			return martianHop
		}
		return f.lookup4(p, binary.BigEndian.Uint32(b[16:]))
	}
	from, hi := binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[24:])
	if from-1 >= linkLocalBits-1 || hi == 0 {
		if h := odd6(from, hi); h != fib.None {
			return h
		}
	}
	return f.lookup6(p, hi, binary.BigEndian.Uint64(b[32:]))
}

func (f *Forwarder) lookup6(p *emu.Packet, hi, lo uint64) fib.Hop {
	if f.hops == nil {
		return f.table.Lookup6(hi, lo)
	}
	p.Class = uint16(f.classes.all.Class6(hi, lo))
	return f.hops[p.Class]
}

func (f *Forwarder) lookup4(p *emu.Packet, address uint32) fib.Hop {
	if f.hops == nil {
		return f.table.Lookup4(address)
	}
	p.Class = uint16(f.classes.all.Class4(address))
	return f.hops[p.Class]
}

const linkLocalBits = 0xfe80 << 48

// odd6 is the hop of a packet whose source is not in ::/64 to fe7f::, or whose destination is in ::/64, if that
// decides it. Of all that, site-local addresses (fec0::/10) alone are like others.
func odd6(from, to uint64) fib.Hop {
	switch {
	case to == 0, from == 0, from>>56 == 0xff:
		return martianHop
	case from>>54 == linkLocalBits>>54:
		return scopeHop
	}
	return fib.None
}

// martian4 reports whether no packet beyond a link has an address with this first byte (RFC 1812, 5.3.7).
func martian4(first byte) bool { return first == 0 || first == 127 || first >= 224 }

// foreign drops a packet that a LAN carries to another than this router.
func (f *Forwarder) foreign(p *emu.Packet) bool {
	one := &f.ports[p.Port]
	if !one.lan {
		return false
	}
	if to := f.router.Frame(p)[:6]; to[0]&1 != 0 || [6]byte(to) == one.mac {
		return false
	}
	f.drop(p, OtherHost)
	return true
}

// slow is for packets that are near or at the end of their hop limit.
func (f *Forwarder) slow(p *emu.Packet) {
	if p.Near() {
		f.near(p)
		return
	}
	switch a := &f.all[f.lookup(f.router, p)]; a.kind {
	case toWire, toLAN, toGroup:
		f.refuse(p, HopLimit, 0)
	default:
		f.onward(p, a)
	}
}

// onward sends a packet to an adjacency, or says why not.
func (f *Forwarder) onward(p *emu.Packet, a *adjacency) {
	if a.kind == toGroup {
		a = f.choose(p, a.more)
	}
	switch a.kind {
	case toWire:
		f.out(p, a)
	case toLAN:
		if mtu := f.ports[a.port].mtu; p.Len() > int(mtu) {
			f.large(p, a, mtu)
		} else {
			f.neighbour(p, a)
		}
	case toSelf:
		f.self(p)
	default:
		f.refuse(p, refusals[a.kind], 0)
	}
}

// out sends a packet to the one neighbour of a port, if the link takes it.
func (f *Forwarder) out(p *emu.Packet, a *adjacency) {
	if p.Len() > int(a.fits) {
		f.large(p, a, a.fits)
		return
	}
	p.Routed()
	f.leave(p, a.port)
}

// leave sets where a packet goes that may. What the router itself sends keeps its hop limit.
func (f *Forwarder) leave(p *emu.Packet, port uint16) {
	if p.Port != emu.Taken {
		p.Hop--
	}
	p.Port = port
}
