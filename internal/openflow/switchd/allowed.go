package switchd

import (
	"encoding/binary"
	"fmt"
	"math"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// checkInstruction says what an owner's flow may not do.
func (t *flowTable) checkInstruction(of owner, f controller.Flow, i controller.Instruction) error {
	switch i := i.(type) {
	case ofp.GotoTable:
		return t.checkTable(of, i.Table)
	case ofp.ApplyActions:
		return t.checkActions(of, f, i.Actions)
	case ofp.WriteActions:
		return t.checkActions(of, controller.Flow{}, i.Actions) // whose order is the switch's
	case ofp.ClearActions, ofp.WriteMetadata:
		return nil
	}
	return fmt.Errorf("the instruction %T is not for modules", i)
}

func (t *flowTable) checkTable(of owner, n uint8) error {
	if n == 0 || t.tables[n] != of {
		return fmt.Errorf("on to table %d: it is not one that Tables gave", n)
	}
	return nil
}

func (t *flowTable) checkActions(of owner, f controller.Flow, actions []controller.Action) error {
	for i, a := range actions {
		if r, is := a.(ofp.Resubmit); is && r.Table == 0 && f.Table == 0 {
			if !guarded(f.Match, actions[:i]) {
				return fmt.Errorf("resubmit to table 0: the packet would come to this rule again: have the match ask for a bit of register %d that is 0, and set it before", controller.GuardRegister)
			}
			continue
		} else if is {
			if err := t.checkTable(of, r.Table); err != nil {
				return err
			}
			continue
		}
		if out, is := a.(ofp.Output); is && out.Port == ofp.PortTable {
			return fmt.Errorf("output to the port TABLE: it is for packets that are sent (Out): in a flow it would begin again, and might not end")
		}
		if err := checkAction(a); err != nil {
			return err
		}
		if err := checkGuard(a); err != nil {
			return err
		}
	}
	return nil
}

// checkGuard keeps bits of the guard register at 1 in all rules of modules. So each resubmit to table 0 leaves fewer that are
// 0, and they come to an end, also where rules of several modules give way to each other.
func checkGuard(a controller.Action) error {
	guard := controller.Reg(controller.GuardRegister)
	var to controller.Field
	switch a := a.(type) {
	case ofp.SetField:
		to = a.Field
		if bits := bitsOf(a.OXM); to == guard && a.Uint()&bits == bits {
			return nil
		}
	case ofp.CopyField:
		to = a.Dst
	}
	if to == guard || to == ofp.PacketReg(controller.GuardRegister/2) { // of which it is a half
		return fmt.Errorf("%v is written: of register %d, which says what rules have given way, bits can only be set to 1", to, controller.GuardRegister)
	}
	return nil
}

// guarded reports whether a rule with this match does not take a packet again with which actions were done.
func guarded(m controller.Match, actions []controller.Action) bool {
	var zero, set uint64
	for _, o := range m {
		if o.Field == controller.Reg(controller.GuardRegister) {
			zero |= bitsOf(o) &^ o.Uint()
		}
	}
	for _, a := range actions {
		if s, is := a.(ofp.SetField); is && s.OXM.Field == controller.Reg(controller.GuardRegister) {
			set |= s.OXM.Uint() & bitsOf(s.OXM)
		}
	}
	return zero&set != 0
}

// bitsOf are those bits of a 32-bit register that count.
func bitsOf(o controller.OXM) uint64 {
	if len(o.Mask()) != 4 {
		return math.MaxUint32
	}
	return uint64(binary.BigEndian.Uint32(o.Mask()))
}

// checkSend says what a packet that is sent may not do.
func checkSend(actions []controller.Action) error {
	for _, a := range actions {
		if _, is := a.(ofp.Resubmit); is {
			return fmt.Errorf("the action %T is for flows: send to the port PortTable", a)
		}
		if err := checkAction(a); err != nil {
			return err
		}
	}
	return nil
}

// checkAction keeps owners to actions that have no effect beyond the packet. Groups and meters are Scaffold's.
func checkAction(a controller.Action) error {
	switch a := a.(type) {
	case ofp.Output:
		if a.Port == ofp.PortController {
			return fmt.Errorf("output to the controller: what is punted is metered: use Subscribe")
		}
		return nil
	case ofp.SetField, ofp.CopyField, ofp.DecTTL, ofp.SetTTL, ofp.PushVLAN, ofp.PopVLAN, ofp.PushMPLS, ofp.PopMPLS, ofp.SetQueue:
		return nil
	}
	return fmt.Errorf("the action %T is not for modules", a)
}
