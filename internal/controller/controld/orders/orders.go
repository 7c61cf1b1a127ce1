package orders

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/store"
)

// A Change is what an order comes to: records to save, its effect once they are, and what the history has of it.
type Change struct {
	Records []store.Change
	Effect  func() // nil: none
	Says    []*apiv1.Event
}

// And is both changes, the other one's effect after this one's.
func (c Change) And(other Change) Change {
	all := Change{append(c.Records, other.Records...), c.Effect, append(c.Says, other.Says...)}
	switch {
	case c.Effect == nil:
		all.Effect = other.Effect
	case other.Effect != nil:
		all.Effect = func() { c.Effect(); other.Effect() }
	}
	return all
}

// History is what happened and was ordered.
type History interface {
	CarriedOut(number string) *apiv1.Event // by an order of that number; nil
	Next() uint64
	Records([]*apiv1.Event) []store.Change
	Ordered([]*apiv1.Event)
	Happened(*apiv1.Event)
	Announce(*apiv1.Event)
}

// A Loop runs functions in the goroutine that owns what is changed.
type Loop interface {
	Ask(context.Context, func()) error
	Post(func()) bool
}

// A Saver stores records before it returns.
type Saver interface {
	Now(context.Context, ...store.Change) error
}

// A Config is what orders need of others.
type Config struct {
	Controller string // its name
	Loop       Loop
	Saver      Saver
	History    History
	Flush      func()      // sends what follows from a change
	Saved      func(error) // is told of saving that failed
	Resign     func(error) // ends the term: it is not known what was saved
}

// Orders are those of one term.
type Orders struct {
	Config
	mu       sync.Mutex // one change at a time, from its check over its saving to its effect
	refusing events.Refusals
}

// New takes orders.
func New(cfg Config) *Orders { return &Orders{Config: cfg} }

// Do checks an order in the loop, saves it outside, and carries it out in the loop. Once it is saved
// a caller who hangs up stops it no more.
func (x *Orders) Do(ctx context.Context, check func() (Change, error)) error {
	_, err := x.Once(ctx, check)
	return err
}

// Once is Do, and says what the history has of the order, also where that was carried out already.
func (x *Orders) Once(ctx context.Context, check func() (Change, error)) (says *apiv1.Event, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var before *apiv1.Event
	var c Change
	asked := x.ask(ctx, func() {
		if before = x.History.CarriedOut(gate.OrderOf(ctx)); before == nil {
			c, err = check()
		}
	})
	if asked != nil || before != nil {
		return before, asked
	}
	if err != nil {
		x.refused(ctx, err)
		return nil, Error(err)
	}
	ctx = context.WithoutCancel(ctx)
	if err := x.Save(ctx, &c); err != nil {
		return nil, err
	}
	err = x.CarryOut(ctx, func() {
		if c.Effect != nil {
			c.Effect()
		}
		x.History.Ordered(c.Says)
		x.Flush()
	})
	if err != nil || len(c.Says) == 0 {
		return nil, err
	}
	return c.Says[0], nil
}

// Alone keeps other orders waiting until over is called: for one that is more than a check and an effect.
func (x *Orders) Alone() (over func()) {
	x.mu.Lock()
	return x.mu.Unlock
}

// Record saves what somebody did that changed no record.
func (x *Orders) Record(ctx context.Context, e *apiv1.Event) error {
	c := Change{Says: []*apiv1.Event{e}}
	ctx = context.WithoutCancel(ctx)
	if err := x.Save(ctx, &c); err != nil {
		return err
	}
	return x.CarryOut(ctx, func() { x.History.Ordered(c.Says) })
}

// CarryOut does in the loop what was saved. Where the term has ended meanwhile it is not for this controller to do any more: the
// next term begins with what was saved.
func (x *Orders) CarryOut(ctx context.Context, f func()) error {
	if err := x.Loop.Ask(ctx, f); err != nil {
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("this was saved, and the controller that leads next does it; `scaffold events` has it: %w", err))
	}
	return nil
}

// Save makes a change durable, and with it, in the same commit, the history's word of who ordered it. Its effect is the
// caller's.
func (x *Orders) Save(ctx context.Context, c *Change) error {
	if len(c.Records) > 0 && len(c.Says) == 0 { // a bug, which is to leave a trace at least
		c.Says = []*apiv1.Event{events.New("order", "", "the state was changed, and nothing says what for")}
	}
	var records []store.Change
	by := gate.ActorOf(ctx, x.Controller)
	err := x.ask(ctx, func() {
		for _, e := range c.Says {
			if e.Seq = x.History.Next(); e.By == nil {
				e.By = by
			}
			e.Order = gate.OrderOf(ctx)
		}
		records = append(c.Records, x.History.Records(c.Says)...)
	})
	if err != nil {
		return err
	}
	if err := x.Saver.Now(ctx, records...); err != nil {
		return x.unsaved(err)
	}
	return nil
}

// ErrInDoubt is why a term ends of which nobody knows what was saved last.
var ErrInDoubt = errors.New("it is not known what was saved last")

// unsaved is the answer to an order that could not be saved. No answer of etcd leaves open what was saved: the next term
// begins with what is there.
func (x *Orders) unsaved(err error) error {
	x.Saved(err)
	switch {
	case errors.Is(err, store.ErrFull): // the controller is well otherwise: this is an answer, not the want of one
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("nothing was changed: the state of controller %s cannot be saved: %w, then try again", x.Controller, err))
	case store.Doubtful(err):
		x.Resign(fmt.Errorf("%w: %w", ErrInDoubt, err))
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("it is not known whether this was saved, look before you try again: %w", err))
	}
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf("nothing was changed: %w", err))
}

func (x *Orders) ask(ctx context.Context, f func()) error {
	if err := x.Loop.Ask(ctx, f); err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return nil
}
