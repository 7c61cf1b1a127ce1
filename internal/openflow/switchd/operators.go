package switchd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/core/backoff"
	"scaffold.dev/scaffold/internal/openflow/ofctl"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A keptFlow is a flow of an operator's, in the words that were typed: what a port's number is may be another
// one when the switch comes again.
type keptFlow struct {
	at             string
	number         uint32
	match, actions string
	priority       uint16
	first          bool
	trouble        string // why the switch is not told to have it
}

// A keeper saves operators' flows beyond this process.
type keeper interface {
	keep(ctx context.Context, f keptFlow, gone bool) error
	kept(ctx context.Context) ([]keptFlow, error)
}

// Errors of operators.
var (
	errNoFlow  = errors.New("no such flow")
	errNotRead = errors.New("the flows of operators are not read yet: try again")
)

// A badFlow is one that cannot be.
type badFlow struct{ error }

func (b badFlow) Unwrap() error { return b.error }

// operators keep the flows that operators added. To modules they are one of them.
type operators struct {
	keeper keeper
	flows  *flowTable

	orders sync.Mutex // one at a time, from its check over its saving to its effect

	mu     sync.Mutex // never held while anything is waited for
	loaded bool
	at     map[string][]*keptFlow // by switch and number
	ports  map[string]ofctl.Ports // of switches that came
}

func newOperators(k keeper, flows *flowTable) *operators {
	return &operators{keeper: k, flows: flows, at: make(map[string][]*keptFlow), ports: make(map[string]ofctl.Ports)}
}

// Name implements controller.Module.
func (*operators) Name() string { return "operator" }

// Start implements controller.Module.
func (o *operators) Start(n controller.Network) error {
	n.HandleSwitches(o.changed)
	return nil
}

// Between attempts to read what is kept: no switch is let in before, and a controller that begins to lead may find the store
// without a leader for a moment.
const (
	loadFirst = 25 * time.Millisecond
	loadLast  = time.Second
)

// load reads what is kept, and tries until it succeeds or ctx ends.
func (o *operators) load(ctx context.Context) bool {
	for again := (backoff.Backoff{First: loadFirst, Last: loadLast}); ; {
		if list, err := o.keeper.kept(ctx); err == nil {
			o.take(list)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(again.Next()):
		}
	}
}

func (o *operators) take(list []keptFlow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loaded = true
	for _, f := range list {
		o.at[f.at] = append(o.at[f.at], &f)
	}
	for at := range o.at { // also of switches that are not there yet: what names no port can be said already
		o.push(at)
	}
}

// changed looks again at flows that name ports.
func (o *operators) changed(s controller.Switch) {
	if !s.Up {
		return
	}
	ports := portsOf(s)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !maps.Equal(o.ports[s.Name], ports) || o.ports[s.Name] == nil {
		o.ports[s.Name] = ports
		o.push(s.Name)
	}
}

func portsOf(s controller.Switch) ofctl.Ports {
	ports := make(ofctl.Ports, len(s.Ports))
	for _, p := range s.Ports {
		ports[p.Name] = p.Number
	}
	return ports
}

// push tells a switch what it is to have. One flow that cannot be costs only itself.
func (o *operators) push(at string) {
	var good []ownFlow
	for _, f := range o.at[at] {
		own, err := f.own(o.ports[at])
		f.trouble = ""
		if err != nil {
			f.trouble = err.Error()
			continue
		}
		good = append(good, own)
	}
	if o.flows.set(ownOperator, at, good) == nil {
		return
	}
	var alone []ownFlow
	for _, own := range good {
		if err := o.flows.set(ownOperator, at, append(alone[:len(alone):len(alone)], own)); err != nil {
			o.find(at, own.ID).trouble = err.Error()
			continue
		}
		alone = append(alone, own)
	}
}

// own is the flow as the switch's ports make it.
func (f *keptFlow) own(ports ofctl.Ports) (ownFlow, error) {
	own := ownFlow{ID: f.number}
	own.Priority, own.First = f.priority, f.first
	var err error
	if own.Match, err = ofctl.ParseMatch(f.match, ports); err != nil {
		return own, err
	}
	actions, err := ofctl.ParseActions(f.actions, own.Match, ports)
	if len(actions) > 0 {
		own.Instructions = ofp.Apply(actions...)
	}
	return own, err
}

func (o *operators) find(at string, number uint32) *keptFlow {
	for _, f := range o.at[at] {
		if f.number == number {
			return f
		}
	}
	return nil
}

// add takes a flow of an operator's for a switch that ever came, and returns it as it is kept.
func (o *operators) add(ctx context.Context, f keptFlow) (keptFlow, error) {
	o.orders.Lock()
	defer o.orders.Unlock()
	f, err := o.checked(f)
	if err == nil {
		err = o.keeper.keep(ctx, f, false)
	}
	if err != nil {
		return f, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at[f.at] = append(o.at[f.at], &f)
	o.push(f.at)
	return f, nil
}

// checked says what is wrong with a flow, and gives it a number.
func (o *operators) checked(f keptFlow) (keptFlow, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ports, known := o.ports[f.at]
	switch {
	case !o.loaded:
		return f, errNotRead
	case !known:
		return f, fmt.Errorf("switch %.80q: %w", f.at, errNoSwitch)
	}
	own, err := f.own(ports)
	if err == nil {
		err = o.flows.may(ownOperator, f.at, own)
	}
	if err != nil {
		return f, badFlow{err}
	}
	for _, have := range o.at[f.at] {
		f.number = max(f.number, have.number)
	}
	f.number++
	return f, nil
}

// remove forgets one.
func (o *operators) remove(ctx context.Context, at string, number uint32) error {
	o.orders.Lock()
	defer o.orders.Unlock()
	o.mu.Lock()
	f, loaded := o.find(at, number), o.loaded
	o.mu.Unlock()
	switch {
	case !loaded:
		return errNotRead
	case f == nil:
		return fmt.Errorf("switch %.80q, flow %d of operators: %w: scaffold net switch flow ls --owner operator lists those that there are", at, number, errNoFlow)
	}
	if err := o.keeper.keep(ctx, *f, true); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at[at] = slices.DeleteFunc(o.at[at], func(have *keptFlow) bool { return have == f })
	o.push(at)
	return nil
}

// list are the flows of a switch, by number.
func (o *operators) list(at string) []keptFlow {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]keptFlow, 0, len(o.at[at]))
	for _, f := range o.at[at] {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b keptFlow) int { return cmp.Compare(a.number, b.number) })
	return list
}
