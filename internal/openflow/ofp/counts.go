package ofp

import "time"

// FlowCounts are what a flow has counted.
type FlowCounts struct {
	Duration Duration // since it was added
	Packets  uint64
	Bytes    uint64
}

// A Duration is seconds and nanoseconds, as on the wire.
type Duration struct{ Sec, Nsec uint32 }

// Duration is it as Go has it.
func (d Duration) Duration() time.Duration {
	return time.Duration(d.Sec)*time.Second + time.Duration(d.Nsec)
}

func (d *Duration) layout(c *codec) {
	u32(c, &d.Sec)
	u32(c, &d.Nsec)
}

// The statistics fields of 1.5 that we read; others are passed over.
const (
	oxsDuration = 0
	oxsIdle     = 1
	oxsFlows    = 3
	oxsPackets  = 4
	oxsBytes    = 5
)

// A stat is one member of 1.5's list of statistics.
type stat struct {
	kind, size uint32
	layout     func()
}

func (s stat) header() uint32 { return classStats<<16 | s.kind<<9 | s.size }

// layoutOXS is a list of statistics: its members have headers like those of match fields.
func (c *codec) layoutOXS(stats ...stat) {
	c.aligned(2, func() {
		c.pad(2)
		c.length()
		if c.writing {
			for _, s := range stats {
				h := s.header()
				u32(c, &h)
				s.layout()
			}
		}
		for c.left() > 0 {
			c.readStat(stats)
		}
	})
}

func (c *codec) readStat(stats []stat) {
	var h uint32
	u32(c, &h)
	c.within(int(h&0xff), func() {
		for _, s := range stats {
			if s.header() == h {
				s.layout()
			}
		}
		c.take(c.left())
	})
}

// layoutOXS is what a flow has counted, and more of the same list.
func (f *FlowCounts) layoutOXS(c *codec, more ...stat) {
	stats := append([]stat{{oxsDuration, 8, func() { f.Duration.layout(c) }}}, more...)
	c.layoutOXS(append(stats,
		stat{oxsPackets, 8, func() { u64(c, &f.Packets) }},
		stat{oxsBytes, 8, func() { u64(c, &f.Bytes) }})...)
}

func (a *Aggregate) layout(c *codec) {
	if c.v >= V15 {
		c.layoutOXS(
			stat{oxsPackets, 8, func() { u64(c, &a.Packets) }},
			stat{oxsBytes, 8, func() { u64(c, &a.Bytes) }},
			stat{oxsFlows, 4, func() { u32(c, &a.Flows) }})
		return
	}
	u64(c, &a.Packets)
	u64(c, &a.Bytes)
	u32(c, &a.Flows)
	c.pad(4)
}
