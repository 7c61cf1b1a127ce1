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

// byClass forwards packets whose class is mostly known.
func (f *Forwarder) byClass(batch []emu.Packet) {
	for {
		n := straight(batch, f.hops, f.all)
		if n == len(batch) {
			return
		}
		f.one(&batch[n])
		batch = batch[n+1:]
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
	keys [burst]fib.Key
	hops [burst]fib.Hop
	at   [burst]uint8 // places in the batch
	odd  [burst]uint8 // places of packets that need more than that
}

// byTable looks every packet up.
func (f *Forwarder) byTable(batch []emu.Packet) {
	for len(batch) > burst {
		f.byTable(batch[:burst])
		batch = batch[burst:]
	}
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
