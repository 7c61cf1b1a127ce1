package main

import (
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
)

// A policer is an IP router that lets each sender through at a rate, by token buckets. What it does not say itself is
// the Forwarder's: routes, ICMP, neighbours. The engine calls all its methods from one thread, so it needs no locks.
type policer struct {
	*forward.Forwarder
	rate    uint64 // bit/s
	burst   uint64 // bytes
	buckets map[sender]*bucket
	others  bucket // of those who came when there was no room
	policed uint64 // packets dropped
	dropped []emu.Packet
}

func newPolicer(rate, burst uint64, f *forward.Forwarder) *policer {
	return &policer{Forwarder: f, rate: rate, burst: burst, buckets: map[sender]*bucket{}}
}

// Process implements emu.Program. What is dropped goes to the end of the batch, so that the Forwarder sees the
// rest as one batch.
func (p *policer) Process(r *emu.Router, batch []emu.Packet) {
	kept := batch[:0]
	p.dropped = p.dropped[:0]
	for _, one := range batch {
		if p.passes(r, &one) {
			kept = append(kept, one)
			continue
		}
		p.policed += uint64(one.Count())
		one.Port = emu.Drop
		p.dropped = append(p.dropped, one)
	}
	copy(batch[len(kept):], p.dropped)
	p.Forwarder.Process(r, kept)
}

// passes says whether a packet does. What stays on its link, such as neighbour discovery and routing protocols, does.
// A train of segments passes as a whole or not at all.
func (p *policer) passes(r *emu.Router, one *emu.Packet) bool {
	if one.Near() {
		return true
	}
	b := p.bucket(senderOf(one, r.Bytes(one)), r.Now())
	return b.take(r.Now(), p.rate, p.burst, float64(one.Len()*one.Count()))
}

// bucket is that of a sender; a new one is full.
func (p *policer) bucket(s sender, now time.Duration) *bucket {
	if b := p.buckets[s]; b != nil {
		return b
	}
	if len(p.buckets) == maxSenders {
		return &p.others
	}
	b := &bucket{bytes: float64(p.burst), at: now}
	p.buckets[s] = b
	return b
}
