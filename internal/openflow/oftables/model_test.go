package oftables

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A model is a switch as the specification has it, slow and obvious.
type model struct {
	v      ofp.Version
	flows  map[flowKey]ofp.Flow
	groups map[ofp.GroupID]ofp.GroupDesc
	meters map[ofp.MeterID]ofp.Meter
}

func newModel(v ofp.Version) *model {
	return &model{v, map[flowKey]ofp.Flow{}, map[ofp.GroupID]ofp.GroupDesc{}, map[ofp.MeterID]ofp.Meter{}}
}

// do obeys messages, and complains of the first that a switch would refuse.
func (m *model) do(bodies ...ofp.Body) error {
	for _, b := range bodies {
		if _, err := (ofp.Message{Version: m.v, Body: b}).Append(nil); err != nil {
			return err
		}
		var err error
		switch b := b.(type) {
		case ofp.FlowMod:
			err = m.flowMod(b)
		case ofp.GroupMod:
			err = m.groupMod(b)
		case ofp.MeterMod:
			err = m.meterMod(b)
		}
		if err != nil {
			return fmt.Errorf("%+v: %w", b, err)
		}
	}
	return nil
}

func (m *model) flowMod(b ofp.FlowMod) error {
	key := flowKey{b.Table, b.Priority, text(canonical(b.Match))}
	cookie := func(f ofp.Flow) bool { return f.Cookie&b.CookieMask == b.Cookie&b.CookieMask }
	switch b.Command {
	case ofp.FlowAdd:
		for _, a := range actionsOf(b.Instructions) {
			if g, is := a.(ofp.Group); is && m.groups[g.ID].ID == 0 {
				return fmt.Errorf("no group %#x", g.ID)
			}
			if x, is := a.(ofp.MeterAction); is && m.meters[x.ID].ID == 0 {
				return fmt.Errorf("no meter %#x", x.ID)
			}
		}
		m.flows[key] = ofp.Flow{Table: b.Table, Priority: b.Priority, Cookie: b.Cookie, Match: b.Match, Instructions: b.Instructions,
			IdleTimeout: b.IdleTimeout, HardTimeout: b.HardTimeout, Flags: b.Flags}
	case ofp.FlowDeleteStrict:
		if f, ok := m.flows[key]; ok && cookie(f) {
			delete(m.flows, key)
		}
	case ofp.FlowDelete:
		if b.Table != ofp.AllTables || len(b.Match) > 0 {
			return fmt.Errorf("the model has no such command")
		}
		maps.DeleteFunc(m.flows, func(_ flowKey, f ofp.Flow) bool { return cookie(f) })
	default:
		return fmt.Errorf("the model has no such command")
	}
	return nil
}

// idle has time go by without a packet for a flow, and is what the switch says of it; ok is false where it stays, or says nothing.
func (m *model) idle(key flowKey) (news ofp.FlowRemoved, ok bool) {
	f := m.flows[key]
	if f.IdleTimeout == 0 {
		return news, false
	}
	delete(m.flows, key)
	return ofp.FlowRemoved{Reason: ofp.RemovedIdle, Cookie: f.Cookie, Table: f.Table, Priority: f.Priority, IdleTimeout: f.IdleTimeout, Match: f.Match},
		f.Flags&ofp.FlagSendRemoved != 0
}

// actionsOf are all actions, and meters as actions.
func actionsOf(is []ofp.Instruction) (as []ofp.Action) {
	for _, i := range is {
		switch i := i.(type) {
		case ofp.ApplyActions:
			as = append(as, i.Actions...)
		case ofp.MeterInstruction:
			as = append(as, ofp.MeterAction(i))
		}
	}
	return as
}

// using are the flows with an action.
func (m *model) using(a ofp.Action) func(flowKey, ofp.Flow) bool {
	return func(_ flowKey, f ofp.Flow) bool { return slices.Contains(actionsOf(f.Instructions), a) }
}

func (m *model) groupMod(b ofp.GroupMod) error {
	_, there := m.groups[b.ID]
	switch b.Command {
	case ofp.GroupAdd, ofp.GroupModify:
		if there != (b.Command == ofp.GroupModify) {
			return fmt.Errorf("the group is there: %v", there)
		}
		m.groups[b.ID] = ofp.GroupDesc{Kind: b.Kind, ID: b.ID, Buckets: b.Buckets, Selection: b.Selection}
	case ofp.GroupDelete:
		delete(m.groups, b.ID)
		maps.DeleteFunc(m.flows, m.using(ofp.Group{ID: b.ID}))
	}
	return nil
}

func (m *model) meterMod(b ofp.MeterMod) error {
	_, there := m.meters[b.ID]
	switch b.Command {
	case ofp.MeterAdd, ofp.MeterModify:
		if there != (b.Command == ofp.MeterModify) {
			return fmt.Errorf("the meter is there: %v", there)
		}
		m.meters[b.ID] = b.Meter
	case ofp.MeterDelete:
		delete(m.meters, b.ID)
		maps.DeleteFunc(m.flows, m.using(ofp.MeterAction{ID: b.ID}))
	}
	return nil
}

// read is what it says that it has, in an order of its own.
func (m *model) read(r *rand.Rand) (flows []ofp.Flow, groups []ofp.GroupDesc, meters []ofp.Meter) {
	for _, f := range m.flows {
		f.Match = slices.Clone(f.Match)
		r.Shuffle(len(f.Match), func(i, j int) { f.Match[i], f.Match[j] = f.Match[j], f.Match[i] })
		flows = append(flows, f)
	}
	return flows, slices.Collect(maps.Values(m.groups)), slices.Collect(maps.Values(m.meters))
}

// bits are which of copies' an entry has.
var bits = regexp.MustCompile(`xreg7=[0-9a-fx/]*`)

// text is all that it has, sorted, with what numbers stand for in their place.
func (m *model) text(t *Tables) string {
	x := stands{m, map[uint64][]ofp.Flow{}}
	var lines []string
	for _, f := range m.flows {
		mark, ok := f.Match.Get(ofp.Metadata)
		if ok && (f.Table == t.table(tableChoose) || f.Table == t.table(tableReturned) || f.Table == t.table(tableOthers)) {
			x.marked[mark.Uint()] = append(x.marked[mark.Uint()], f)
		}
	}
	for _, f := range m.flows {
		mark, ok := f.Match.Get(ofp.Metadata)
		if ok && len(x.marked[mark.Uint()]) > 0 && f.Table != t.table(tableOutput) && f.Table != t.table(tableSize) {
			continue // it is said where the mark is written
		}
		line := fmt.Sprintf("%d %d %#x %d %d %v:", f.Table, f.Priority, f.Cookie, f.IdleTimeout, f.HardTimeout, canonical(f.Match)) + x.does(f.Instructions)
		if f.Table == 0 { // an owner's: which bit of copies it has does not matter
			line = bits.ReplaceAllString(line, "a bit")
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s\n%d groups, %d meters, %d marks", strings.Join(lines, "\n"), len(m.groups), len(m.meters), len(x.marked))
}

// stands says what numbers stand for.
type stands struct {
	*model
	marked map[uint64][]ofp.Flow // by mark, those of the tables where only marks tell lists apart
}

func (x stands) does(is []ofp.Instruction) (line string) {
	for _, i := range is {
		w, ok := i.(ofp.WriteMetadata)
		if !ok || x.marked[w.Metadata] == nil {
			line += fmt.Sprint(i)
			continue
		}
		var list []string
		for _, f := range x.marked[w.Metadata] {
			src, _ := f.Match.Get(ofp.IPv6Src)
			label, _ := f.Match.Get(ofp.IPv6Label)
			list = append(list, fmt.Sprint(f.Table, f.Priority, src, label)+x.does(f.Instructions))
		}
		slices.Sort(list)
		line += fmt.Sprint(list)
	}
	for _, a := range actionsOf(is) {
		switch a := a.(type) {
		case ofp.Group:
			g := readGroup(x.groups[a.ID])
			line = strings.ReplaceAll(line, fmt.Sprint(a), fmt.Sprint(g.kind, g.selection))
			for _, b := range g.buckets {
				for _, y := range b.Actions {
					if y, is := y.(ofp.MeterAction); is {
						line += fmt.Sprint(b.Weight, x.meters[y.ID].Bands)
					} else {
						line += fmt.Sprint(b.Weight, y)
					}
				}
			}
		case ofp.MeterAction:
			line = strings.ReplaceAll(line, fmt.Sprint(a), fmt.Sprint(x.meters[a.ID].Bands))
		}
	}
	return line
}

// newWalker is a source of orders in which a model says what it has.
func newWalker() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }
