package forward

import (
	"encoding/binary"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fib"
)

// pass sends a packet to a port if nothing else is to be done for the adjacency.
func (a *adjacency) pass(p *emu.Packet) bool {
	if p.Len() > int(a.fits) {
		return false
	}
	p.Hop--
	p.Port = a.port
	p.Routed()
	return true
}

// byClass forwards packets whose class is mostly known, or known of none; at most burst of them.
func (f *Forwarder) byClass(batch []emu.Packet) {
	for classified := false; ; {
		n := straight(batch, f.hops, f.all)
		if batch = batch[n:]; len(batch) == 0 {
			return
		}
		if !classified && batch[0].Class == 0 {
			f.classify(batch)
			classified = true
			continue
		}
		f.one(&batch[0])
		batch = batch[1:]
	}
}

// classify gives classes to all packets of IPv6 that are to be forwarded.
func (f *Forwarder) classify(batch []emu.Packet) {
	s := &f.search
	n, _ := s.gather(f.router, batch)
	f.classes.all.Class6All(s.keys[:n], s.classes[:n])
	for i, c := range s.classes[:n] {
		batch[s.at[i]].Class = uint16(c)
	}
}

// straight forwards packets up to the first that needs more than one load of its hop and one of its adjacency: it
// has no class or an old one, or meets what does not take packets just so, for which nothing fits. It calls nothing,
// which keeps all in registers.
func straight(batch []emu.Packet, hops []fib.Hop, all []adjacency) int {
	for i := range batch {
		p := &batch[i]
		if c := int(p.Class); c >= len(hops) || !p.Fast() || int(hops[c]) >= len(all) || !all[hops[c]].pass(p) {
			return i
		}
	}
	return len(batch)
}

// burst is how many addresses are looked up side by side.
const burst = 64

// A search is a burst of addresses for the table.
type search struct {
	keys    [burst]fib.Key
	hops    [burst]fib.Hop
	classes [burst]fib.Class
	at      [burst]uint8 // places in the batch
	odd     [burst]uint8 // places of packets that need more than that
}

// byTable looks every packet up, at most burst of them.
func (f *Forwarder) byTable(batch []emu.Packet) {
	s := &f.search
	n, odd := s.gather(f.router, batch)
	f.table.Lookup6All(s.keys[:n], s.hops[:n])
	for i, h := range s.hops[:n] {
		if !f.all[h].pass(&batch[s.at[i]]) {
			s.odd[odd] = s.at[i]
			odd++
		}
	}
	for _, i := range s.odd[:odd] {
		f.one(&batch[i])
	}
}

// gather collects the addresses of IPv6 packets that a lookup decides over, and the places of others.
func (s *search) gather(r *emu.Router, batch []emu.Packet) (n, odd int) {
	for i := range batch {
		p := &batch[i]
		if !p.Fast() || !p.IPv6() {
			s.odd[odd] = uint8(i)
			odd++
			continue
		}
		b := r.Header6(p)
		from, hi := binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[24:])
		if from-1 >= linkLocalBits-1 || hi == 0 {
			s.odd[odd] = uint8(i)
			odd++
			continue
		}
		s.keys[n] = fib.Key{Hi: hi, Lo: binary.BigEndian.Uint64(b[32:])}
		s.at[n] = uint8(i)
		n++
	}
	return n, odd
}
