package oftables

import (
	"encoding/binary"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// largeReg is the register whose lowest bit says that a packet does not fit.
var largeReg = ofp.Reg(7)

const etherLen = 14

// SetMTU says how many bytes of IPv6 fit through a port that takes less than hosts may send, 0 for any other. Open
// vSwitch would drop what does not fit and tell nobody; a router tells the sender (RFC 8200 §5), so it is punted.
// Of TCP a copy is: segments that a host leaves to its device to cut look large, and are not.
func (t *Tables) SetMTU(name string, mtu int) {
	if t.mtus[name] == mtu || !t.o.Extensions {
		return
	}
	t.mtus[name] = mtu
	if mtu == 0 {
		delete(t.mtus, name)
	}
	t.renderPorts()
}

// measured has the packet's size looked at.
func (t *Tables) measured(mtu int) []ofp.Instruction {
	check := ofp.CheckLarger{Length: uint16(mtu + etherLen), Dst: largeReg}
	return append(ofp.Apply(check), t.goTo(tableSize))
}

// copyBehind sends a packet on, and a copy of it to the controller as far as the meter lets: it drops what comes behind
// it. 1.3 asks meters first, so there is no copy.
func (t *Tables) copyBehind(number ofp.Port) []ofp.Instruction {
	if t.o.Version < ofp.V15 || t.o.NoMeters {
		return ofp.Apply(ofp.Output{Port: number})
	}
	return ofp.Apply(ofp.Output{Port: number}, ofp.MeterAction{ID: meterOf(PuntTooBig)}, ofp.Output{Port: ofp.PortController, MaxLen: ofp.WholePacket})
}

// renderSize is the table size of one port.
func (t *Tables) renderSize(name string, number ofp.Port) {
	out := ofp.UintMasked(ofp.Metadata, uint64(number), outMask)
	large := ofp.UintMasked(largeReg, 1, 1)
	send := ofp.Apply(ofp.Output{Port: number})
	here := t.ports[name] == number && t.mtus[name] != 0 && t.own != 0
	for _, x := range []struct {
		priority uint16
		punts    uint32
		match    ofp.Match
		do       []ofp.Instruction
	}{
		{3, PuntTooBig, ofp.Match{ipv6, proto(sid.TCP), large, out}, t.copyBehind(number)},
		{2, PuntTooBig, ofp.Match{ipv6, large, out}, t.puntAs(PuntTooBig)},
		{1, PuntNothing, ofp.Match{out}, send},
	} {
		key, e := t.flow(t.table(tableSize), x.priority, x.punts, x.match, x.do...)
		if here {
			t.flows.set(key, e)
		} else {
			t.flows.unset(key)
		}
	}
}

// Leaving is the port that a packet which was punted for its size is to leave by.
func Leaving(m ofp.Match) (port ofp.Port, ok bool) {
	for _, o := range m {
		if o.Field == ofp.Metadata {
			b := o.Value()
			return ofp.Port(binary.BigEndian.Uint32(b[4:])), len(b) == 8
		}
	}
	return 0, false
}
