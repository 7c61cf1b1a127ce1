package switchd

import (
	"errors"
	"fmt"
	"sync"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// Bounds of what one owner may want.
const (
	maxOwnSwitches = 1024  // by name
	maxOwnFlows    = 16384 // at one switch
)

// The tables that owners may have: 64 and up.
const (
	firstTable = 64
	lastTable  = 253
)

// A flowTable is what owners want switches to hold: flows, and subscriptions, which are flows that punt. It
// gives the plane each owner's whole at each change; two owners never want the same rule of table 0.
type flowTable struct {
	plane plane

	mu       sync.Mutex // held while the plane is told, so that it hears changes in their order
	owners   map[owner]*holdings
	tables   [256]owner
	switches map[string]bool // that ever came
	punts    map[string]*punt
	wanted   map[string]map[*punt]bool // by switch, "": of all
	lastPunt uint32

	hand sync.RWMutex // also held where a punt's subs change: packets are handed out beside mu
	byID map[uint32]*punt
}

// holdings are what one owner wants.
type holdings struct {
	name  string
	flows map[string][]ownFlow
	calls map[string]uint64 // how often it said what it wants of a switch
	keeps bool              // see controller.Keeper
	links map[string]bool   // switches of which it says links
	gone  bool
}

func newFlowTable(p plane) *flowTable {
	return &flowTable{plane: p, owners: make(map[owner]*holdings), switches: make(map[string]bool),
		punts: make(map[string]*punt), wanted: make(map[string]map[*punt]bool), byID: make(map[uint32]*punt)}
}

func (t *flowTable) add(of owner, name string, keeps bool) {
	t.owners[of] = &holdings{name: name, flows: make(map[string][]ownFlow), calls: make(map[string]uint64), keeps: keeps, links: make(map[string]bool)}
}

// set makes these the owner's flows at a switch.
func (t *flowTable) set(of owner, at string, flows []ownFlow) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.owners[of]
	if h.gone {
		return controller.ErrStopped
	}
	if _, has := h.flows[at]; !has && len(h.flows) >= maxOwnSwitches {
		return fmt.Errorf("flows for more than %d switches, known or not", maxOwnSwitches)
	}
	if err := t.check(of, at, flows); err != nil {
		return fmt.Errorf("flows for switch %s: %w", at, err)
	}
	h.calls[at]++
	h.flows[at] = flows
	if len(flows) == 0 {
		delete(h.flows, at)
	}
	return t.push(of, at)
}

// may says why an owner cannot want one flow more.
func (t *flowTable) may(of owner, at string, one ownFlow) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	have := t.owners[of].flows[at]
	return t.check(of, at, append(have[:len(have):len(have)], one))
}

// push tells the plane all that an owner wants of a switch.
func (t *flowTable) push(of owner, at string) error {
	h := t.owners[of]
	all := h.flows[at]
	all = append(all[:len(all):len(all)], t.puntsOf(of, at)...)
	return t.plane.setFlows(of, at, all, h.calls[at])
}

// switchCame has a switch that was not known take the subscriptions to all, and lose what a stopped owner kept there.
func (t *flowTable) switchCame(at string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.switches[at] = true
	var errs []error
	for of, h := range t.owners {
		left := h.gone && h.keeps // it was stopped, and has rules of a controller before there
		if left {
			h.calls[at]++
		}
		if left || len(t.puntsOf(of, at)) > 0 {
			errs = append(errs, t.push(of, at))
		}
	}
	return errors.Join(errs...)
}

// forget takes away all that an owner wanted, for good.
func (t *flowTable) forget(of owner) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.owners[of]
	h.gone = true
	var errs []error
	had := h.flows
	h.flows = make(map[string][]ownFlow)
	for at, owners := range t.unsubscribe(of) {
		errs = append(errs, t.pushAll(at, owners))
	}
	if h.keeps { // what it has not spoken of is there as well
		for at := range t.switches {
			h.calls[at]++
			had[at] = nil
		}
	}
	for at := range had {
		errs = append(errs, t.push(of, at))
	}
	for at := range h.links {
		errs = append(errs, t.plane.setLinks(of, at, nil))
	}
	return errors.Join(errs...)
}

func (t *flowTable) setLinks(of owner, at string, links []controller.Link) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.owners[of]
	if h.gone {
		return controller.ErrStopped
	}
	if !h.links[at] && len(h.links) >= maxOwnSwitches {
		return fmt.Errorf("links of more than %d switches, known or not", maxOwnSwitches)
	}
	h.links[at] = true
	return t.plane.setLinks(of, at, links)
}

// allot gives an owner n tables more.
func (t *flowTable) allot(of owner, n int) ([]uint8, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owners[of].gone {
		return nil, controller.ErrStopped
	}
	var free []uint8
	for i := firstTable; i <= lastTable && len(free) < n; i++ {
		if t.tables[i] == 0 {
			free = append(free, uint8(i))
		}
	}
	if n < 1 || len(free) < n {
		return nil, fmt.Errorf("%d tables: %d are left", n, len(free))
	}
	for _, i := range free {
		t.tables[i] = of
	}
	return free, nil
}

// check says what of the flows may not be.
func (t *flowTable) check(of owner, at string, flows []ownFlow) error {
	if len(flows) > maxOwnFlows {
		return fmt.Errorf("%d flows: at most %d", len(flows), maxOwnFlows)
	}
	taken := make(map[ruleKey]owner)
	for other, h := range t.owners {
		if other != of {
			for _, f := range h.flows[at] {
				if f.Table == 0 {
					taken[keyOf(f.Flow)] = other
				}
			}
		}
	}
	for i, f := range flows {
		key := keyOf(f.Flow)
		err := t.checkFlow(of, f.Flow)
		if other, is := taken[key]; is && err == nil {
			err = fmt.Errorf("%s has a rule of this priority and match already: choose another priority", t.owners[other].name)
		}
		if err != nil {
			return fmt.Errorf("flow %d, %v: %w", i+1, f.Match, err)
		}
		taken[key] = of
	}
	return nil
}

func (t *flowTable) checkFlow(of owner, f controller.Flow) error {
	switch {
	case f.Priority > controller.MaxPriority:
		return fmt.Errorf("priority %d: at most %d", f.Priority, controller.MaxPriority)
	case f.Table != 0 && t.tables[f.Table] != of:
		return fmt.Errorf("table %d: want 0 or one that Tables gave", f.Table)
	case f.Table != 0 && f.First:
		return fmt.Errorf("first, in table %d: only rules of table 0 can be before Scaffold's", f.Table)
	}
	for _, i := range f.Instructions {
		if err := t.checkInstruction(of, f, i); err != nil {
			return err
		}
	}
	return sayable(f)
}

// sayable says what the codec would not write in any version.
func sayable(f controller.Flow) error {
	mod := ofp.FlowMod{Match: f.Match, Instructions: f.Instructions}
	_, err := ofp.Message{Version: ofp.V15, Body: mod}.Append(nil)
	return err
}

// A ruleKey is what OpenFlow tells rules of one table by.
type ruleKey struct {
	table    uint8
	first    bool
	priority uint16
	match    string
}

func keyOf(f controller.Flow) ruleKey {
	return ruleKey{f.Table, f.First, f.Priority, canonical(f.Match)}
}
