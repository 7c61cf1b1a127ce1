package switchd

import (
	"fmt"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// checkInstruction says what an owner's flows may not do.
func (t *flowTable) checkInstruction(of owner, i controller.Instruction) error {
	switch i := i.(type) {
	case ofp.GotoTable:
		return t.checkTable(of, i.Table)
	case ofp.ApplyActions:
		return t.checkActions(of, i.Actions)
	case ofp.WriteActions:
		return t.checkActions(of, i.Actions)
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

func (t *flowTable) checkActions(of owner, actions []controller.Action) error {
	for _, a := range actions {
		if r, is := a.(ofp.Resubmit); is {
			if err := t.checkTable(of, r.Table); err != nil {
				return err
			}
			continue
		}
		if err := checkAction(a); err != nil {
			return err
		}
	}
	return nil
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
