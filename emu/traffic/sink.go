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
	for i := range batch {
		s.Packets += uint64(batch[i].Count())
		s.Bytes += uint64(batch[i].Len())
		batch[i].Port = emu.Drop
	}
}
