package lead

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
)

// leading runs the process in the background until the returned function is called, which says how it ended.
func leading(t *testing.T, c *Process) (end func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, nil) }() // ends with cancel
	return func() error { cancel(); return <-done }
}

func answer(c *Process, path string) string {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Body.String()
}

// TestATermEndsWithTheRightToLead: what it serves ends too, the right is given back, and the next term begins with what is
// stored then.
func TestATermEndsWithTheRightToLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, term := newElections(), newTerm()
		c := process(e, term)
		end := leading(t, c)
		for range 2 {
			right := newLeadership()
			e.wins <- right
			<-term.began
			synctest.Wait()
			if got := answer(c, "/"); got != "the term's answer" || term.state.ID != "n1" {
				t.Errorf("it leads with the state of %q, and answers %q", term.state.ID, got)
			}
			stream := make(chan string, 1)
			go func() { stream <- answer(c, "/stream") }()
			synctest.Wait()
			close(right.over)
			if why := <-term.ended; !errors.Is(why, session.ErrTermOver) {
				t.Errorf("the term ended by %v", why)
			}
			if why := <-stream; why != session.ErrTermOver.Error() {
				t.Errorf("what it served ended by %s", why)
			}
			synctest.Wait()
			if c.term.Load() != nil || right.resigns.Load() != 1 || c.cfg.Leads.(*figure).value.Load() != 0 {
				t.Errorf("it resigned %d times, and leads", right.resigns.Load())
			}
		}
		if terms := c.cfg.Terms.(*figure).value.Load(); terms != 2 {
			t.Errorf("%d terms are counted, want 2", terms)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestATermThatDoesNotKnowWhatWasSavedIsFollowedByAnother: also where this controller is alone.
func TestATermThatDoesNotKnowWhatWasSavedIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, term := newElections(), newTerm()
		e.alone = true
		c := process(e, term)
		end := leading(t, c)
		for range 2 {
			e.wins <- newLeadership()
			<-term.began
			term.end(fmt.Errorf("%w: no answer", orders.ErrInDoubt))
			if why := <-term.ended; !errors.Is(why, orders.ErrInDoubt) {
				t.Errorf("the term ended by %v", why)
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatWouldFailAgainEndsTheController: a state that cannot be taken up, and what runs beside; an election that fails
// does so only where there is no other controller.
func TestWhatWouldFailAgainEndsTheController(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		alone   bool
		breaks  func(*elections, *Process)
		goesOn  bool
		attempt int64
	}{
		"the state": {breaks: func(_ *elections, c *Process) {
			c.cfg.Begin = beginsNothing(fmt.Errorf("%w: %w", store.ErrFull, broken))
		}, attempt: 1},
		"the right, lost meanwhile": {breaks: func(_ *elections, c *Process) { c.cfg.Begin = beginsNothing(store.ErrNotLeader) }, goesOn: true, attempt: 3},
		"what runs beside":          {breaks: func(_ *elections, c *Process) { c.cfg.Beside = func(context.Context) error { return broken } }, attempt: 1},
		"the election":              {breaks: func(e *elections, _ *Process) { e.fails = broken }, goesOn: true, attempt: 3},
		"the store of one alone":    {alone: true, breaks: func(e *elections, _ *Process) { e.fails = broken }, attempt: 1},
		"a member that was removed": {breaks: func(e *elections, _ *Process) { e.fails = store.ErrOut }, attempt: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newElections()
			e.alone = c.alone
			for range 9 {
				e.wins <- newLeadership()
			}
			p := process(e, newTerm())
			c.breaks(e, p)
			ctx, cancel := context.WithTimeout(t.Context(), 3*campaignAgain-campaignAgain/2)
			defer cancel()
			err := p.campaign(ctx)
			if (err == nil) != c.goesOn || e.campaign.Load() != c.attempt {
				t.Errorf("%s: it ended by %v after %d attempts, want %d, and that it goes on: %v", name, err, e.campaign.Load(), c.attempt, c.goesOn)
			}
		})
	}
}

func beginsNothing(err error) func(context.Context, store.State, func(error)) (Term, error) {
	return func(context.Context, store.State, func(error)) (Term, error) { return nil, err }
}

// TestTheOneThatLeadsHearsOfTheOthers: of those that run, and of those that got a vote.
func TestTheOneThatLeadsHearsOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, term := newElections(), newTerm()
		end := leading(t, process(e, term))
		e.wins <- newLeadership()
		<-term.began
		e.leads(store.Candidate{Name: "c1"}, store.Candidate{Name: "c2"})
		e.learned <- []string{"c3"}
		for _, want := range []string{"c1 runs", "c2 runs", "c3 has a vote"} {
			if got := <-term.told; got != want {
				t.Errorf("the term hears that %s, want %s", got, want)
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
