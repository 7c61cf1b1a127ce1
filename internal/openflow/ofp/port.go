package ofp

import "fmt"

// A Port is a port's number.
type Port uint32

// The last number of a port, and the ports that are none.
const (
	PortMax        Port = 0xffffff00
	PortIn         Port = 0xfffffff8 // back out of where it came in
	PortTable      Port = 0xfffffff9 // PacketOut alone: through the tables
	PortNormal     Port = 0xfffffffa // as a switch without a controller would
	PortFlood      Port = 0xfffffffb
	PortAll        Port = 0xfffffffc
	PortController Port = 0xfffffffd
	PortLocal      Port = 0xfffffffe
	PortAny        Port = 0xffffffff
)

var portNames = [...]string{"IN_PORT", "TABLE", "NORMAL", "FLOOD", "ALL", "CONTROLLER", "LOCAL", "ANY"}

func (p Port) String() string {
	if p >= PortIn {
		return portNames[p-PortIn]
	}
	return fmt.Sprint(uint32(p))
}

// PortDesc is what a port is and how it is.
type PortDesc struct {
	Number Port
	HW     MAC
	Name   string
	Config PortConfig
	State  PortState
	Ether  Ethernet
}

// PortConfig are settings of a port, by whoever is in charge of it.
type PortConfig uint32

// The settings of a port.
const (
	ConfigDown       PortConfig = 1 << 0
	ConfigNoRecv     PortConfig = 1 << 2
	ConfigNoForward  PortConfig = 1 << 5
	ConfigNoPacketIn PortConfig = 1 << 6
)

// PortState is how a port is.
type PortState uint32

// How a port can be.
const (
	StateLinkDown PortState = 1 << 0
	StateBlocked  PortState = 1 << 1
	StateLive     PortState = 1 << 2 // fast failover counts it as working
)

// Ethernet is what a port can do: bits of OFPPF_*, and speeds in kbit/s.
type Ethernet struct {
	Current, Advertised, Supported, Peer uint32
	Speed, MaxSpeed                      uint32
}

const (
	nameLen      = 16
	propEthernet = 0
)

func (p *PortDesc) layout(c *codec) {
	if c.v >= V15 {
		c.record(4, func() { p.layout15(c) })
		return
	}
	u32(c, &p.Number)
	c.pad(4)
	p.layoutState(c)
	p.Ether.layout(c)
}

func (p *PortDesc) layout15(c *codec) {
	u32(c, &p.Number)
	c.length()
	c.pad(2)
	p.layoutState(c)
	c.properties(propEthernet, func() {
		c.pad(4)
		p.Ether.layout(c)
	})
}

func (p *PortDesc) layoutState(c *codec) {
	layoutMAC(c, &p.HW)
	c.pad(2)
	c.text(nameLen, &p.Name)
	u32(c, &p.Config)
	u32(c, &p.State)
}

func (e *Ethernet) layout(c *codec) {
	for _, v := range []*uint32{&e.Current, &e.Advertised, &e.Supported, &e.Peer, &e.Speed, &e.MaxSpeed} {
		u32(c, v)
	}
}

func layoutMAC(c *codec, m *MAC) {
	if c.writing {
		c.b = append(c.b, m[:]...)
	} else {
		copy(m[:], c.take(len(m)))
	}
}

// properties is the list of properties that ends a record of 1.5: writing, the one of that kind;
// reading, all, of which those of other kinds are passed over.
func (c *codec) properties(kind uint16, do func()) {
	if c.writing {
		c.aligned(2, func() { u16(c, &kind); c.length(); do() })
		return
	}
	for c.left() > 0 {
		is := c.peek16(0) == kind
		c.aligned(2, func() {
			c.take(4)
			if is {
				do()
			}
			c.take(c.left())
		})
	}
}
