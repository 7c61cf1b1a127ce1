package orders

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
)

// a controller that does at once what it is asked, and notes what is done in which order.
type controller struct {
	did     []string
	fails   error // to save
	done    *apiv1.Event
	resigns error
	seq     uint64
	ends    bool // the term, once something was saved
}

func (c *controller) Ask(_ context.Context, f func()) error {
	if c.ends && slices.ContainsFunc(c.did, func(what string) bool { return strings.HasPrefix(what, "save") }) {
		return errors.New("the controller is stopping")
	}
	c.did = append(c.did, "loop")
	f()
	return nil
}

func (c *controller) Post(f func()) bool { f(); return true }

func (c *controller) Now(_ context.Context, records ...store.Change) error {
	c.did = append(c.did, fmt.Sprint("save ", len(records)))
	return c.fails
}

func (c *controller) CarriedOut(string) *apiv1.Event { return c.done }
func (c *controller) Next() uint64                   { c.seq++; return c.seq }
func (c *controller) Records(list []*apiv1.Event) []store.Change {
	return make([]store.Change, len(list))
}
func (c *controller) Ordered(list []*apiv1.Event) { c.did = append(c.did, "told "+list[0].Kind) }
func (c *controller) Happened(e *apiv1.Event)     { c.did = append(c.did, "happened "+e.Kind) }
func (c *controller) Announce(e *apiv1.Event)     { c.did = append(c.did, "announced "+e.Kind) }

func newOrders() (*Orders, *controller) {
	c := new(controller)
	return New(Config{
		Controller: "c1", Loop: c, Saver: c, History: c, Flush: func() { c.did = append(c.did, "flush") },
		Saved: func(error) { c.did = append(c.did, "not saved") }, Resign: func(err error) { c.resigns = err },
	}), c
}

func change(c *controller, what string) Change {
	return Change{Records: []store.Change{store.DeleteHost(what)}, Effect: func() { c.did = append(c.did, "do "+what) }, Says: []*apiv1.Event{{Kind: what}}}
}

// A change is saved with who ordered it before anything follows from it.
func TestAnOrderIsSavedBeforeItIsDone(t *testing.T) {
	x, c := newOrders()
	var says *apiv1.Event
	told, err := x.Once(t.Context(), func() (Change, error) {
		all := Change{}.And(change(c, "a")).And(Change{}).And(change(c, "b"))
		says = all.Says[0]
		return all, nil
	})
	want := []string{"loop", "loop", "save 4", "loop", "do a", "do b", "told a", "flush"}
	if err != nil || !slices.Equal(c.did, want) || says.By == nil || says.Seq != 1 || told != says {
		t.Errorf("%v: %q, want %q; the history has %v", err, c.did, want, says)
	}
	c.did = nil
	if err := x.Do(t.Context(), func() (Change, error) { return Change{Says: []*apiv1.Event{{Kind: "none"}}}, nil }); err != nil || c.did[len(c.did)-1] != "flush" {
		t.Errorf("a change without an effect: %v, %q", err, c.did)
	}
}

// What was carried out is not done again, by whichever controller.
func TestAnOrderThatComesAgainIsAnsweredFromTheHistory(t *testing.T) {
	x, c := newOrders()
	c.done = &apiv1.Event{Kind: "service.create"}
	before, err := x.Once(t.Context(), func() (Change, error) { t.Error("it is checked"); return Change{}, nil })
	if err != nil || before != c.done || len(c.did) != 1 {
		t.Errorf("%v, %v, did %q", before, err, c.did)
	}
}

func TestWhatCannotBeSavedIsNotDone(t *testing.T) {
	for _, failure := range []struct {
		err     error
		code    connect.Code
		resigns bool
	}{
		{store.ErrFull, connect.CodeResourceExhausted, false},
		{store.ErrNotLeader, connect.CodeUnavailable, false},
		{context.DeadlineExceeded, connect.CodeUnavailable, true},
	} {
		x, c := newOrders()
		c.fails = failure.err
		err := x.Do(t.Context(), func() (Change, error) { return change(c, "a"), nil })
		if connect.CodeOf(err) != failure.code || slices.Contains(c.did, "do a") || !slices.Contains(c.did, "not saved") {
			t.Errorf("%v: %v, did %q", failure.err, err, c.did)
		}
		if (c.resigns != nil) != failure.resigns || failure.resigns && !errors.Is(c.resigns, ErrInDoubt) {
			t.Errorf("%v: resigns because of %v", failure.err, c.resigns)
		}
	}
}

// byHand is the context of a call that came by a connection.
// Where the term ends between the saving of an order and its effect the answer says that it was saved: whoever leads next does it.
func TestAnOrderThatIsSavedWhenTheTermEndsIsSaidToBe(t *testing.T) {
	x, c := newOrders()
	c.ends = true
	for name, order := range map[string]func() error{
		"an order": func() error {
			return x.Do(t.Context(), func() (Change, error) { return change(c, "a"), nil })
		},
		"what somebody did": func() error { c.did = nil; return x.Record(t.Context(), &apiv1.Event{Kind: "a"}) },
	} {
		err := order()
		if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "saved") || !strings.Contains(err.Error(), "scaffold events") {
			t.Errorf("%s: %v", name, err)
		}
		c.did = nil
	}
}

func byHand(t *testing.T) (ctx context.Context) {
	handler := gate.WithConnection(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ctx = r.Context() }))
	handler.ServeHTTP(nil, httptest.NewRequest(http.MethodPost, "/x", nil))
	return ctx
}

// A refusal is told where it says something about who asked; typing mistakes are nobody's news.
func TestWhichRefusalsAreTold(t *testing.T) {
	for err, code := range map[error]connect.Code{
		ErrConflict: connect.CodeFailedPrecondition, ErrChanged: connect.CodeAborted, names.ErrExists: connect.CodeAlreadyExists,
		ErrNoHost: connect.CodeNotFound, names.ErrUnknown: connect.CodeNotFound, names.ErrInvalid: connect.CodeInvalidArgument,
	} {
		x, c := newOrders()
		got := x.Do(byHand(t), func() (Change, error) { return Change{}, fmt.Errorf("%w: because", err) })
		told := code != connect.CodeNotFound && code != connect.CodeInvalidArgument
		if connect.CodeOf(got) != code || slices.Contains(c.did, "happened "+RefusedCallKind) != told || len(c.did) > 2 {
			t.Errorf("%v: %v, did %q, want %v, told %v", err, got, c.did, code, told)
		}
	}
	x, c := newOrders()
	x.RefusedCall(&apiv1.Actor{Role: gate.RoleUnauthenticated}, "/x", errors.New("who?"))
	if !slices.Equal(c.did, []string{"announced " + RefusedCallKind}) {
		t.Errorf("of a call without a credential: %q: it must cost no write", c.did)
	}
}

// One that is more than a check and an effect keeps others waiting.
func TestOneOrderAtATime(t *testing.T) {
	x, c := newOrders()
	over := x.Alone()
	done := make(chan error)
	go func() { // ends with the test: its order is carried out
		done <- x.Do(t.Context(), func() (Change, error) { return change(c, "b"), nil })
	}()
	c.did = append(c.did, "first")
	over()
	if err := <-done; err != nil || c.did[0] != "first" {
		t.Errorf("%v, did %q", err, c.did)
	}
}
