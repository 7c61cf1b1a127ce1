package capture

import (
	"net/netip"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A Known flow is one of the service that a host's daemon told of.
type Known struct {
	Server bool // this end is the server's
	Local  netip.Addr
	Peer   netip.Addr // zero while it has none
}

// An end is one side of a flow as it is called on the wire.
type end struct {
	server bool
	used   int // packets; the least used go first when there are too many
}

// endsMost is how many ends are remembered.
const endsMost = 1 << 16

// A Follower knows which packets are a service's. It learns from first packets, which name the service, and from there
// along the answers; from messages, by which flows get other names; and from what the host's daemon tells.
type Follower struct {
	space   sid.Space
	service sid.ServiceID
	ends    map[netip.Addr]*end
}

// NewFollower knows no flow yet.
func NewFollower(space sid.Space, service sid.ServiceID) *Follower {
	return &Follower{space: space, service: service, ends: map[netip.Addr]*end{}}
}

// Learn takes in flows of the service.
func (f *Follower) Learn(flows []Known) {
	for _, k := range flows {
		f.name(k.Local, k.Server)
		f.name(k.Peer, !k.Server)
	}
}

func (f *Follower) name(a netip.Addr, server bool) {
	if !f.bound(a) || f.ends[a] != nil {
		return
	}
	if len(f.ends) >= endsMost {
		f.forget()
	}
	f.ends[a] = &end{server: server}
}

// forget makes room by leaving out what was used least.
func (f *Follower) forget() {
	for limit := 1; len(f.ends) >= endsMost; limit *= 2 {
		for a, e := range f.ends {
			if e.used < limit {
				delete(f.ends, a)
			}
		}
	}
}

// bound reports whether the address is a locator with a socketID.
func (f *Follower) bound(a netip.Addr) bool {
	return a.IsValid() && f.space.AS.Contains(a) && sid.SocketID(sid.Low(a)).Valid()
}

// A Side says what one of a packet's addresses is.
type Side struct {
	Of     Role
	Server bool // of the flow, as Client is its other end
}

// A Role is what an address on the wire stands for.
type Role uint8

// The roles.
const (
	Other  Role = iota
	Name        // the service itself: nobody has chosen an instance yet
	Chosen      // the service at a host: the first packet on its last stretch
	Bound       // one end of a flow
	Host        // a host itself
)

// Verdict is whose packet it is.
type Verdict struct {
	Mine    bool // of the service
	Unknown bool // of a flow that nobody told of yet: ask, and look again
	Src     Side
	Dst     Side
}

// Take looks at a packet, and learns from it.
func (f *Follower) Take(h Headers) Verdict {
	v := Verdict{Src: f.side(h.Src), Dst: f.side(h.Dst)}
	switch {
	case v.Dst.Of == Name || v.Dst.Of == Chosen:
		f.name(h.Src, false)
		v.Mine, v.Src = true, f.side(h.Src)
	case v.Src.Of == Name: // of a datagram service whose answers are not bound
		v.Mine = true
	case f.ends[h.Dst] != nil:
		f.name(h.Src, !f.ends[h.Dst].server)
		v.Mine, v.Src = true, f.side(h.Src)
	case f.ends[h.Src] != nil:
		f.name(h.Dst, !f.ends[h.Src].server)
		v.Mine, v.Dst = true, f.side(h.Dst)
	default:
		if q, ok := h.quoted(); ok { // an error about a packet of the service
			v.Mine = f.Take(q).Mine
			return v
		}
		v.Unknown = f.bound(h.Src) && f.bound(h.Dst)
	}
	if v.Mine {
		f.use(h)
		f.hear(h)
	}
	return v
}

func (f *Follower) use(h Headers) {
	for _, a := range [...]netip.Addr{h.Src, h.Dst} {
		if e := f.ends[a]; e != nil {
			e.used++
		}
	}
}

// hear learns from messages how ends are called from now on.
func (f *Follower) hear(h Headers) {
	m := message(h)
	if r, ok := m.(wire.Renegotiate); ok {
		for _, c := range r.Claims {
			if f.ends[c.Stable] != nil || f.known(r.Old, c) {
				f.name(r.Locator.Addr(uint64(c.Socket)), c.Server)
			}
		}
	}
}

// known reports whether an end of the flow was met under one of the names that the claim tells.
func (f *Follower) known(old sid.Locator, c wire.Claim) bool {
	for _, s := range c.Chain {
		if f.ends[old.Addr(uint64(s))] != nil {
			return true
		}
	}
	return false
}

func message(h Headers) wire.Message {
	if h.Proto != sid.UDP || h.DstPort != sid.Port && h.SrcPort != sid.Port {
		return nil
	}
	m, err := wire.Parse(h.Body)
	if err != nil {
		return nil
	}
	return m
}

// side says what an address is.
func (f *Follower) side(a netip.Addr) Side {
	if id, ok := f.space.ServiceOf(a); ok {
		if id == f.service {
			return Side{Of: Name, Server: true}
		}
		return Side{}
	}
	if !f.space.AS.Contains(a) {
		return Side{}
	}
	low := sid.Low(a)
	if e := f.ends[a]; e != nil {
		return Side{Of: Bound, Server: e.server}
	}
	switch {
	case sid.SocketID(low).Valid():
		return Side{Of: Bound}
	case low == 1:
		return Side{Of: Host}
	case sid.Suffix(low) == f.service.Suffix:
		return Side{Of: Chosen, Server: true}
	}
	return Side{}
}
