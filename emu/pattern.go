package emu

// A Pattern is a packet that is made again and again, faster than by [Router.New].
type Pattern struct {
	slot   []byte // as it will lie in a slot, with the kernel's header and the Ethernet header
	packet Packet
}

// NewPattern takes bytes that begin with an IP header, with a hop limit that is right in it.
func NewPattern(ip []byte) Pattern {
	slot := make([]byte, atIP+len(ip))
	kind := etherType(ip)
	slot[atIP-2], slot[atIP-1] = byte(kind>>8), byte(kind)
	copy(slot[atIP:], ip)
	p := Packet{count: 1, length: uint16(len(ip)), Port: Taken, flags: flagRouted}
	p.parse(slot[atEther:])
	return Pattern{slot, p}
}

// Copy makes a packet of each pattern, as many as there is room in run and memory for, and returns how many.
func (r *Router) Copy(run []Packet, patterns []Pattern) int {
	a := r.shard.arena
	n := min(len(run), len(patterns))
	for i := range run[:n] {
		one := &patterns[i]
		id, ok := a.takeFor(len(one.slot))
		if !ok {
			r.count.Starved += uint64(n - i)
			n = i
			break
		}
		length := uint32(copy(a.slot(id), one.slot)) - vnetLen
		a.frames[id] = Frame{Bytes: length, Head: length, Count: 1}
		a.refs[id] = 1
		run[i] = one.packet
		run[i].slot = id
	}
	r.count.Made += uint64(n)
	return n
}

// SendAll lets packets out of a port, or to [Local] of one, or nowhere with [Drop].
func (r *Router) SendAll(run []Packet, port uint16) {
	if len(run) > 0 {
		r.sendRun(r.shard, port, run)
	}
}
