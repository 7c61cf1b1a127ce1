package ofp

import (
	"fmt"
	"slices"
)

// An Action is one step of what happens to a packet: Output, Group, SetField and the others of this
// package.
type Action interface {
	// what says which action of the version it is.
	what(Version) actionID
}

// An actionID is an action's type, and for those of experimenters what follows it.
type actionID struct {
	kind         uint16
	experimenter uint32
	subtype      uint16
}

const experimental = 0xffff

func standard(kind uint16) actionID { return actionID{kind: kind} }

func nicira(subtype uint16) actionID { return actionID{experimental, nx, subtype} }

// actions has the layout of each, without type, length and experimenter.
var actions = map[actionID]func(*codec, Action) Action{
	standard(0):  both[Output, *Output, Action](),
	standard(17): both[PushVLAN, *PushVLAN, Action](),
	standard(18): both[PopVLAN, *PopVLAN, Action](),
	standard(19): both[PushMPLS, *PushMPLS, Action](),
	standard(20): both[PopMPLS, *PopMPLS, Action](),
	standard(21): both[SetQueue, *SetQueue, Action](),
	standard(22): both[Group, *Group, Action](),
	standard(23): both[SetTTL, *SetTTL, Action](),
	standard(24): both[DecTTL, *DecTTL, Action](),
	standard(25): both[SetField, *SetField, Action](),
	standard(28): both[CopyField, *CopyField, Action](),
	standard(29): both[MeterAction, *MeterAction, Action](),
	nicira(6):    both[CopyField, *CopyField, Action](),
	nicira(14):   both[Resubmit, *Resubmit, Action](),
	nicira(49):   both[CheckLarger, *CheckLarger, Action](),
}

// actionsOf15 are those whose numbers mean nothing before.
var actionsOf15 = []actionID{standard(28), standard(29)}

func actionLayout(v Version, id actionID) func(*codec, Action) Action {
	if v < V15 && slices.Contains(actionsOf15, id) || v >= V15 && id == nicira(6) {
		return nil
	}
	return actions[id]
}

// An OtherAction is one that this package leaves alone: Data is what follows type and length.
type OtherAction struct {
	Kind uint16
	Data []byte
}

func (a OtherAction) what(Version) actionID { return standard(a.Kind) }

// layoutActions is a list of actions that goes to the end of the record.
func layoutActions(c *codec, as *[]Action) {
	list(c, as, func(a *Action) {
		c.rounded(2, func() {
			if c.writing {
				c.writeAction(*a)
			} else {
				*a = c.readAction()
			}
		})
	})
}

func (c *codec) writeAction(a Action) {
	if a == nil {
		c.fail(ErrUnsayable, "an action that is nil")
		return
	}
	id := a.what(c.v)
	c.actionHeader(id)
	if o, ok := a.(OtherAction); ok {
		c.raw(&o.Data)
		return
	}
	layout := actionLayout(c.v, id)
	if layout == nil {
		c.fail(ErrUnsayable, "the action %T in %v", a, c.v)
		return
	}
	layout(c, a)
}

func (c *codec) actionHeader(id actionID) {
	u16(c, &id.kind)
	c.length()
	if id.kind == experimental && id.experimenter != 0 {
		u32(c, &id.experimenter)
		u16(c, &id.subtype)
	}
}

func (c *codec) readAction() Action {
	id := standard(c.peek16(0))
	if id.kind == experimental && c.left() >= 10 {
		id.experimenter, id.subtype = c.peek32(4), c.peek16(8)
	}
	if layout := actionLayout(c.v, id); layout != nil {
		c.actionHeader(id)
		return layout(c, nil)
	}
	o := OtherAction{Kind: id.kind}
	c.take(4)
	c.raw(&o.Data)
	return o
}

func (a OtherAction) String() string {
	return fmt.Sprintf("action type %d with %d bytes", a.Kind, len(a.Data))
}
