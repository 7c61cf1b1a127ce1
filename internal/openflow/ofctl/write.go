package ofctl

import (
	"fmt"
	"strings"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// Match writes a match; "any" if it has no fields.
func Match(m ofp.Match, ports Ports) string {
	if len(m) == 0 {
		return "any"
	}
	words := make([]string, len(m))
	for i, o := range m {
		words[i] = o.String()
		if o.Field == ofp.InPort && o.Mask() == nil {
			words[i] = "in_port=" + ports.name(ofp.Port(o.Uint()))
		}
	}
	return strings.Join(words, ",")
}

// Instructions writes what a flow does, in the order in which it is done; "drop" if nothing.
func Instructions(list []ofp.Instruction, ports Ports) string {
	var words []string
	for _, i := range list {
		switch i := i.(type) {
		case ofp.ApplyActions:
			for _, a := range i.Actions {
				words = append(words, action(a, ports))
			}
		case ofp.WriteActions:
			words = append(words, "write_actions("+Actions(i.Actions, ports)+")")
		case ofp.ClearActions:
			words = append(words, "clear_actions")
		case ofp.GotoTable:
			words = append(words, fmt.Sprintf("goto_table:%d", i.Table))
		case ofp.WriteMetadata:
			words = append(words, fmt.Sprintf("write_metadata:%#x/%#x", i.Metadata, i.Mask))
		case ofp.MeterInstruction:
			words = append(words, fmt.Sprintf("meter:%d", i.ID))
		default:
			words = append(words, fmt.Sprintf("instruction(%T)", i))
		}
	}
	if len(words) == 0 {
		return "drop"
	}
	return strings.Join(words, ",")
}

// Actions writes a list of actions; "drop" if it is empty.
func Actions(list []ofp.Action, ports Ports) string {
	if len(list) == 0 {
		return "drop"
	}
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = action(a, ports)
	}
	return strings.Join(words, ",")
}

func action(a ofp.Action, ports Ports) string {
	switch a := a.(type) {
	case ofp.Output:
		if a.Port > ofp.PortMax {
			return ports.name(a.Port)
		}
		return "output:" + ports.name(a.Port)
	case ofp.SetField:
		_, value, _ := strings.Cut(a.OXM.String(), "=")
		return "set_field:" + value + "->" + a.Field.String()
	case ofp.DecTTL:
		return "dec_ttl"
	case ofp.SetTTL:
		return fmt.Sprintf("mod_nw_ttl:%d", a.TTL)
	case ofp.Group:
		return fmt.Sprintf("group:%d", a.ID)
	case ofp.MeterAction:
		return fmt.Sprintf("meter:%d", a.ID)
	case ofp.SetQueue:
		return fmt.Sprintf("set_queue:%d", a.Queue)
	case ofp.PushVLAN:
		return fmt.Sprintf("push_vlan:%#x", a.EtherType)
	case ofp.PopVLAN:
		return "pop_vlan"
	case ofp.PushMPLS:
		return fmt.Sprintf("push_mpls:%#x", a.EtherType)
	case ofp.PopMPLS:
		return fmt.Sprintf("pop_mpls:%#x", a.EtherType)
	case ofp.Resubmit:
		return fmt.Sprintf("resubmit(,%d)", a.Table)
	case ofp.CopyField:
		return fmt.Sprintf("move:%v[%d..%d]->%v[%d..%d]", a.Src, a.SrcOffset, int(a.SrcOffset)+int(a.Bits)-1, a.Dst, a.DstOffset, int(a.DstOffset)+int(a.Bits)-1)
	}
	return fmt.Sprintf("action(%v)", a)
}
