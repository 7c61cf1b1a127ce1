package emu

// Bytes are a packet from the IP header on, for reading: of a train, its header and all its payload. The hop limit
// is not in it, but in the descriptor.
func (r *Router) Bytes(p *Packet) []byte {
	a := r.shard.arena
	return a.slot(p.slot)[atIP : vnetLen+a.frames[p.slot].Bytes]
}

// Header6 is the header of a packet of IPv6, for reading, without its hop limit.
func (r *Router) Header6(p *Packet) *[40]byte {
	a := r.shard.arena
	at := a.place(p.slot) + atIP
	return (*[40]byte)(a.memory[at : at+40])
}

// Frame is a packet with its Ethernet header, for reading.
func (r *Router) Frame(p *Packet) []byte {
	a := r.shard.arena
	return a.slot(p.slot)[atEther : vnetLen+a.frames[p.slot].Bytes]
}

// Edit is a packet from the IP header on, for writing in place; its length stays. Others may share the bytes, such
// as the rest of a train: then the packet gets its own before. It returns false without memory for that. The
// program keeps checksums right; [Router.Checksum] says how a packet has the one of its transport.
func (r *Router) Edit(p *Packet) ([]byte, bool) {
	a := r.shard.arena
	f := &a.frames[p.slot]
	if a.refs[p.slot] > 1 || p.flags&flagTrain != 0 && uint32(p.count) != max(1, f.Count) {
		if !a.unshare(p, r.shard.head[:]) {
			r.count.Starved++
			return nil, false
		}
	}
	a.write(p)
	p.Class = 0
	return r.Bytes(p), true
}

// Reparse takes a packet's header anew after it was edited.
func (r *Router) Reparse(p *Packet) {
	p.flags &^= flagIPv4 | flagIPv6 | flagNear
	r.shard.arena.parse(p)
	p.Class = 0
}

// A Checksum is how a packet comes by the checksum of its transport header.
type Checksum struct {
	Partial bool // the field holds the sum of the pseudo header alone: the last one who sees the packet completes it
	Start   int  // where the transport header begins, from the IP header on, if partial
	Offset  int  // where in it the field is, if partial
}

// Checksum says what the checksum of a packet's transport header is made of. Kernels leave it to the hardware.
func (r *Router) Checksum(p *Packet) Checksum {
	b := r.shard.arena.slot(p.slot)
	if b[vnetFlags]&needsSum == 0 {
		return Checksum{}
	}
	return Checksum{true, int(native.Uint16(b[vnetSumStart:])) - etherLen, int(native.Uint16(b[vnetSumAt:]))}
}

// New makes a packet of bytes that begin with an IP header, with a hop limit that is right in it. Its Port is Taken.
// It returns false without memory for it.
func (r *Router) New(ip []byte) (Packet, bool) {
	p, ok := r.shard.packet(etherType(ip), ip)
	r.made(ok)
	return p, ok
}

// NewFrame makes a packet of an Ethernet frame, which may be of another protocol.
func (r *Router) NewFrame(frame []byte) (Packet, bool) {
	p, ok := r.shard.frame(frame)
	r.made(ok)
	return p, ok
}

func (r *Router) made(ok bool) {
	if ok {
		r.count.Made++
	} else {
		r.count.Starved++
	}
}

// frame makes a packet of an Ethernet frame.
func (s *shard) frame(frame []byte) (Packet, bool) {
	p, ok := s.packet(0, frame[etherLen:])
	if ok {
		copy(s.arena.slot(p.slot)[atEther:], frame[:etherLen])
		p.flags = 0
		s.arena.parse(&p)
	}
	return p, ok
}

// packet makes a packet of what follows the Ethernet header.
func (s *shard) packet(kind uint16, body []byte) (Packet, bool) {
	a := s.arena
	id, ok := a.takeFor(atIP + len(body))
	if !ok {
		return Packet{}, false
	}
	b := a.slot(id)
	clear(b[:atIP])
	b[atIP-2], b[atIP-1] = byte(kind>>8), byte(kind)
	copy(b[atIP:], body)
	n := uint32(etherLen + len(body))
	a.frames[id] = Frame{Bytes: n, Head: n, Count: 1}
	a.refs[id] = 1
	p := Packet{slot: id, count: 1, length: uint16(len(body)), Port: Taken, flags: flagRouted}
	a.parse(&p)
	return p, true
}

func etherType(ip []byte) uint16 {
	if len(ip) > 0 && ip[0]>>4 == 4 {
		return ipv4
	}
	return ipv6
}

// Send lets a packet out of a port, or to [Local] of one, or nowhere with [Drop].
func (r *Router) Send(p Packet, port uint16) {
	p.Port = port
	r.shard.one[0] = p
	r.sendRun(r.shard, port, r.shard.one[:])
}

// Release frees a packet that the program had taken.
func (r *Router) Release(p Packet) {
	r.count.Dropped += uint64(p.count)
	r.shard.arena.release(p.slot)
}

// Routed marks a packet whose Ethernet header is to be written anew where it leaves through an edge; an edge writes
// its own address as the source, and as the destination the neighbour's that the program gives it.
func (p *Packet) Routed() { p.flags |= flagRouted }

// Address writes the addresses of a packet's Ethernet header, which stay until it reaches a router that changes them.
func (r *Router) Address(p *Packet, to, from [6]byte) bool {
	a := r.shard.arena
	if a.refs[p.slot] > 1 && !a.unshare(p, r.shard.head[:]) {
		r.count.Starved++
		return false
	}
	b := a.slot(p.slot)[atEther:]
	copy(b, to[:])
	copy(b[6:], from[:])
	p.flags &^= flagRouted
	return true
}
