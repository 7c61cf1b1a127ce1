package traffic

import (
	"time"

	"scaffold.dev/scaffold/emu"
)

// A Sink counts what it receives and drops it.
type Sink struct {
	Packets uint64
	Bytes   uint64        // from the IP header on
	First   time.Duration // when the first packet came
	Last    time.Duration // and the last
}

// Process counts.
func (s *Sink) Process(r *emu.Router, batch []emu.Packet) {
	if s.Packets == 0 && len(batch) > 0 {
		s.First = r.Now()
	}
	s.Last = r.Now()
	var packets, bytes uint64
	for i := range batch {
		packets += uint64(batch[i].Count())
		bytes += uint64(batch[i].Len())
		batch[i].Port = emu.Drop
	}
	s.Packets += packets
	s.Bytes += bytes
}
