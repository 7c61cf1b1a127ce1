package flow

import (
	"errors"

	"scaffold.dev/scaffold/sid"
)

// slots is how many uplinks, retired ones included, flows can name.
const slots = 8

// A slot is one uplink with one locator. A flow names the slot by which it leaves.
type slot struct {
	uplink  int // 0: retired, or free when there is no locator either
	mtu     uint16
	locator sid.Locator
	retired uint64 // which retirement it was
	quiet   bool   // of one that is retired: its connections' packets are kept back
}

// SetUplink gives an uplink its locator. The one that it had is retired: flows go on under it and leave by the
// uplink at hand. Without a locator the uplink is out of use.
func (m *Machine) SetUplink(n int, u Uplink) error {
	m.retirements++
	var best *slot
	for i := range m.slots {
		if s := &m.slots[i]; s.uplink == n && s.locator != u.Locator {
			s.uplink, s.retired = 0, m.retirements
		}
	}
	if u.Locator == 0 {
		return nil
	}
	for i := range m.slots {
		s := &m.slots[i]
		if s.locator == u.Locator {
			best = s
			break
		}
		if s.uplink == 0 && (best == nil || s.retired < best.retired) {
			best = s
		}
	}
	if best == nil {
		return errors.New("too many uplinks")
	}
	*best = slot{uplink: n, mtu: u.MTU, locator: u.Locator}
	return nil
}

// Quiet says whether what connections send is kept back that are yet to move from a locator which no uplink has.
func (m *Machine) Quiet(l sid.Locator, yes bool) {
	for i := range m.slots {
		if s := &m.slots[i]; s.locator == l {
			s.quiet = yes && s.uplink == 0
		}
	}
}

// at is the slot of the uplink, -1: nothing of ours leaves there.
func (m *Machine) at(uplink int) int {
	for i := range m.slots {
		if uplink != 0 && m.slots[i].uplink == uplink {
			return i
		}
	}
	return -1
}

// of is the slot of the locator, -1 where it has none.
func (m *Machine) of(l sid.Locator) int {
	for i := range m.slots {
		if l != 0 && m.slots[i].locator == l {
			return i
		}
	}
	return -1
}

// by passes a packet that leaves by the slot's uplink, which may not be the one at hand.
func (m *Machine) by(slot, here int, note string, data []byte) {
	o := Output{Verdict: Pass, Reason: note, Data: data}
	if slot >= 0 && m.slots[slot].uplink != 0 && m.slots[slot].uplink != here {
		o.Verdict, o.Uplink = Elsewhere, m.slots[slot].uplink
		o.Reason = "elsewhere"
	}
	m.out = append(m.out, o)
}
