package emu

import (
	"errors"
	"hash/crc64"
)

// ErrNoTrace is returned where a trace is asked for that nobody began.
var ErrNoTrace = errors.New("nothing was noted of the packets: call Trace before the start")

var table = crc64.MakeTable(crc64.ECMA)

// note adds packets that arrive to the way's part of the network's trace.
func (w *way) note(s *shard, run []Packet) {
	for i := range run {
		p := &run[i]
		s.arena.write(p)
		b := s.arena.bytes(p.slot)
		h := mix(w.trace ^ uint64(s.now))
		h = mix(h ^ uint64(p.first)<<32 ^ uint64(p.count))
		w.trace = mix(h ^ crc64.Checksum(b[atEther:min(len(b), maxHead)], table))
	}
}

// Trace begins to take note of every packet that arrives anywhere: by which link, when, and its first bytes. It is
// to be called before the start.
func (n *Net) Trace() { n.tracing = true }

// Sum is the sum of the trace: equal for two runs exactly where the same packets arrived by the same links at the
// same times. It does not depend on shards. Of a network without [Net.Trace] there is none.
func (n *Net) Sum() (sum uint64, err error) {
	if !n.tracing {
		return 0, ErrNoTrace
	}
	for i, l := range n.links {
		for d, w := range l.ways {
			if err := w.far.ask(func() { sum += mix(w.trace ^ mix(uint64(2*i+d))) }); err != nil {
				return 0, err
			}
		}
	}
	return sum, nil
}
