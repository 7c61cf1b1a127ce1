package switchd

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"scaffold.dev/scaffold/controller"
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
// gives the plane each owner's whole, or what of it changed; two owners never want the same rule of table 0.
type flowTable struct {
	plane plane

	mu       sync.Mutex // held while the plane is told, so that it hears changes in their order
	owners   map[owner]*holdings
	taken    map[string]map[ruleKey]owner // by switch, the rules of table 0: whose they are
	numbered uint32                       // the last number of a rule that may expire
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
	flows map[string]*ownRules // by switch
	calls map[string]uint64    // how often it said what it wants of a switch
	keeps bool                 // see controller.Keeper
	links map[string]bool      // switches of which it says links
	gone  bool
}

func newFlowTable(p plane) *flowTable {
	return &flowTable{plane: p, owners: make(map[owner]*holdings), taken: make(map[string]map[ruleKey]owner), switches: make(map[string]bool),
		punts: make(map[string]*punt), wanted: make(map[string]map[*punt]bool), byID: make(map[uint32]*punt),
		// A process before this one has numbered rules that are still there, and whose end may be told to this one.
		numbered: rand.Uint32()}
}

func (t *flowTable) add(of owner, name string, keeps bool) {
	t.owners[of] = &holdings{name: name, flows: make(map[string]*ownRules), calls: make(map[string]uint64), keeps: keeps, links: make(map[string]bool)}
}

// push tells the plane all that an owner wants of a switch.
func (t *flowTable) push(of owner, at string) error {
	h := t.owners[of]
	var all []ownFlow
	if rules := h.flows[at]; rules != nil {
		all = slices.SortedFunc(maps.Values(rules.all), func(a, b ownFlow) int { return cmp.Compare(a.ID, b.ID) })
	}
	return t.plane.setFlows(of, at, append(all, t.puntsOf(of, at)...), h.calls[at])
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
	had := make(map[string]bool)
	for at, rules := range h.flows {
		had[at] = true
		for key := range rules.all {
			t.drop(of, at, key)
		}
	}
	for at, owners := range t.unsubscribe(of) {
		errs = append(errs, t.pushAll(at, owners))
	}
	if h.keeps { // what it has not spoken of is there as well
		for at := range t.switches {
			h.calls[at]++
			had[at] = true
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
