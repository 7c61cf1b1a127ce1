package ofp

// PortStats are what a port has counted. A counter that the switch does not keep has all bits set.
type PortStats struct {
	Port                 Port
	Duration             Duration
	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxDropped, TxDropped uint64
	RxErrors, TxErrors   uint64
	Ether                EthernetStats
}

// EthernetStats are a port's counters of damaged frames.
type EthernetStats struct{ RxFrame, RxOver, RxCRC, Collisions uint64 }

func (p *PortStats) layout(c *codec) {
	if c.v >= V15 {
		c.record(0, func() { p.layout15(c) })
		return
	}
	u32(c, &p.Port)
	c.pad(4)
	p.layoutCounts(c)
	p.Ether.layout(c)
	p.Duration.layout(c)
}

func (p *PortStats) layout15(c *codec) {
	c.length()
	c.pad(2)
	u32(c, &p.Port)
	p.Duration.layout(c)
	p.layoutCounts(c)
	c.properties(propEthernet, func() {
		c.pad(4)
		p.Ether.layout(c)
	})
}

func (p *PortStats) layoutCounts(c *codec) {
	for _, v := range []*uint64{&p.RxPackets, &p.TxPackets, &p.RxBytes, &p.TxBytes,
		&p.RxDropped, &p.TxDropped, &p.RxErrors, &p.TxErrors} {
		u64(c, v)
	}
}

func (e *EthernetStats) layout(c *codec) {
	for _, v := range []*uint64{&e.RxFrame, &e.RxOver, &e.RxCRC, &e.Collisions} {
		u64(c, v)
	}
}
