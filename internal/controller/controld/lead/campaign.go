package lead

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// campaignAgain is the pause after an attempt to lead that failed.
const campaignAgain = 500 * time.Millisecond

// learnerEvery is how often the leader looks whether a new member of the cluster has caught up.
const learnerEvery = time.Second

// campaign leads whenever it can, until ctx ends or there is no sense in it any more.
func (c *Process) campaign(ctx context.Context) error {
	said, again := "", c.store.Elected() // again: what fails may be well soon, for it was
	for {
		t, err := c.store.Campaign(ctx, c.candidate())
		if err == nil {
			said = ""
			err = c.lead(ctx, t)
			t.Resign()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, new(besideError)), !again && !errors.Is(err, orders.ErrInDoubt), errors.Is(err, store.ErrOut), errors.Is(err, store.ErrOtherNetwork), errors.Is(err, errState):
			return err
		case err != nil && !errors.Is(err, session.ErrTermOver) && !errors.Is(err, orders.ErrInDoubt) && err.Error() != said:
			said = err.Error()
			c.log.Warn("this controller stands by and cannot lead now; trying again", "error", err)
		}
		again = true
		select {
		case <-time.After(campaignAgain):
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *Process) candidate() store.Candidate {
	return store.Candidate{Name: c.cfg.Name, API: c.cfg.Advertise, Version: obs.Version(), Since: c.began.UnixMilli(), Once: true}
}

// errState says that the stored state cannot be taken up: the next attempt would find the same.
var errState = errors.New("the stored state cannot be taken up")

// A besideError is of what runs beside the one that leads: it would fail again.
type besideError struct{ error }

func (e besideError) Unwrap() error { return e.error }

// lead is one term, from what is stored to its end. The first goroutine that fails ends all.
func (c *Process) lead(ctx context.Context, of Leadership) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.store.Elected() {
		go func() { // ends with the term
			select {
			case <-of.Done():
				cancel(session.ErrTermOver)
			case <-ctx.Done():
			}
		}()
	}
	state, err := c.store.Begin(ctx, c.cfg.Trust)
	if err != nil {
		return err
	}
	t, err := c.cfg.Begin(ctx, state, cancel)
	if err != nil {
		if store.Doubtful(err) || errors.Is(err, store.ErrNotLeader) {
			return err
		}
		return fmt.Errorf("%w: %w", errState, err)
	}
	return c.runTerm(ctx, t)
}

// runTerm runs a term that has taken up the state.
func (c *Process) runTerm(ctx context.Context, t Term) error {
	over := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.Run(ctx) })
	if c.store.Elected() {
		group.Go(func() error { c.Peers.Follow(ctx, t.Runs); return nil })
		group.Go(func() error { c.promote(ctx, t); return nil })
	}
	c.term.Store(&term{t, ctx})
	c.first.Do(func() { close(c.leads) })
	c.cfg.Leads.Set(1)
	c.cfg.Terms.Inc()
	if c.cfg.Beside != nil {
		group.Go(func() error {
			if err := c.cfg.Beside(ctx); err != nil {
				return besideError{err}
			}
			return nil
		})
	}
	group.Go(func() error { // what runs beside ends by itself only with a reason
		<-ctx.Done()
		return nil
	})
	err := group.Wait()
	c.term.Store(nil)
	c.cfg.Leads.Set(0)
	if err == nil && over.Err() != nil {
		err = context.Cause(over)
	}
	if errors.Is(err, session.ErrTermOver) || store.Doubtful(err) {
		c.log.Warn("this controller does not lead any more", "reason", err)
	}
	return err
}

// promote gives new members of the state's cluster a vote once they have caught up.
func (c *Process) promote(ctx context.Context, t Term) {
	tick := time.NewTicker(learnerEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		names, err := c.store.Promote(ctx)
		for _, name := range names {
			t.Promoted(name)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Debug("members of the cluster", "error", err)
		}
	}
}
