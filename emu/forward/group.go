package forward

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fib"
)

// A group is several adjacencies that share flows (ECMP).
type group struct {
	members []fib.Hop // sorted by what they are, so that a run is the same each time
	alive   []fib.Hop // those whose port is up
}

// gather is the adjacency of a group with these members, with one more user. The members' uses are the group's
// afterwards.
func (a *adjacencies) gather(members []fib.Hop) (fib.Hop, error) {
	if len(members) == 1 {
		return members[0], nil
	}
	slices.SortFunc(members, func(x, y fib.Hop) int {
		m, n := a.targets[x].hop, a.targets[y].hop
		return cmp.Or(m.Port-n.Port, m.Via.Compare(n.Via))
	})
	name := groupName(members)
	if h, ok := a.sets[name]; ok {
		a.targets[h].refs++
		a.releaseAll(members)
		return h, nil
	}
	n := len(a.groups)
	if len(a.spare) > 0 {
		n = int(a.spare[len(a.spare)-1])
	}
	h, err := a.take(adjacency{kind: toGroup, more: uint16(n)}, target{refs: 1})
	if err != nil {
		a.releaseAll(members)
		return 0, err
	}
	if n == len(a.groups) {
		a.groups = append(a.groups, group{})
	} else {
		a.spare = a.spare[:len(a.spare)-1]
	}
	a.groups[n] = group{members: members}
	a.sets[name] = h
	a.look(&a.groups[n])
	return h, nil
}

func (a *adjacencies) releaseAll(members []fib.Hop) {
	for _, m := range members {
		a.release(m)
	}
}

// groupName is what two groups have in common if they are the same.
func groupName(members []fib.Hop) string {
	var b []byte
	for _, m := range members {
		b = binary.NativeEndian.AppendUint16(b, uint16(m))
	}
	return string(b)
}

// dissolve ends a group.
func (a *adjacencies) dissolve(h fib.Hop) {
	n := a.all[h].more
	members := a.groups[n].members
	delete(a.sets, groupName(members))
	a.groups[n] = group{}
	a.spare = append(a.spare, n)
	a.releaseAll(members)
}

// look finds out which members of a group are alive.
func (a *adjacencies) look(g *group) {
	g.alive = g.alive[:0]
	for _, m := range g.members {
		if a.all[m].kind != toDown {
			g.alive = append(g.alive, m)
		}
	}
}

// choose is the member of a group that a flow takes. The flows of a member that is down are spread over the others,
// and no other flow moves.
func (f *Forwarder) choose(p *emu.Packet, n uint16) *adjacency {
	g := &f.groups[n]
	if len(g.alive) == 0 {
		return &downAdjacency
	}
	h := f.hash(p)
	m := g.members[share(h>>32, len(g.members))]
	if f.all[m].kind == toDown {
		m = g.alive[share(h&0xffffffff, len(g.alive))]
	}
	return &f.all[m]
}

var downAdjacency = adjacency{kind: toDown}

// share maps 32 bits to 0 to n-1.
func share(h uint64, n int) uint64 { return h * uint64(n) >> 32 }

// hash is the same for all packets of a flow: of IPv6 its addresses and its label, or its ports where it has none
// (RFC 6438); of IPv4 addresses, protocol and ports. Of fragments only the addresses count, as not all have ports.
func (f *Forwarder) hash(p *emu.Packet) uint64 {
	b := f.router.Bytes(p)
	if p.IPv6() {
		h := mum(binary.BigEndian.Uint64(b[8:])^f.salt, binary.BigEndian.Uint64(b[16:]))
		h = mum(h^binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint64(b[32:])^f.salt)
		label := uint64(binary.BigEndian.Uint32(b)) & 0xfffff
		if label == 0 && hasPorts(b[6]) && len(b) >= 44 {
			label = uint64(b[6])<<32 | uint64(binary.BigEndian.Uint32(b[40:]))
		}
		return mum(h^label, f.salt)
	}
	h := mum(binary.BigEndian.Uint64(b[12:])^f.salt, 1)
	ports, at := uint64(b[9])<<32, int(b[0]&15)*4
	switch {
	case binary.BigEndian.Uint16(b[6:])&0x3fff != 0:
		ports = 0
	case hasPorts(b[9]) && len(b) >= at+4:
		ports |= uint64(binary.BigEndian.Uint32(b[at:]))
	}
	return mum(h^ports, f.salt)
}

func hasPorts(protocol byte) bool { return protocol == protoTCP || protocol == protoUDP }

// mum multiplies and folds (Wang Yi's wyhash).
func mum(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return hi ^ lo
}
