package member

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// Each answer that lets nobody in is of the kind by which a member decides when and where it tries again, and says why.
func TestWhoIsNotLetInLearnsWhy(t *testing.T) {
	for name, c := range map[string]struct {
		answer  any
		kind    error
		outside bool
		says    string
	}{
		"for now":            {no(&apiv1.Refused{Reason: "settling", Retry: true}), ErrRefused, true, "the controller refused this router: settling"},
		"for good":           {no(&apiv1.Refused{Reason: "another r1"}), ErrFinal, true, "the controller does not let this router in: another r1"},
		"a standby":          {no(&apiv1.Refused{Reason: "c2 leads", Standby: true}), ErrStandby, false, "the controller does not lead: c2 leads"},
		"no member":          {connect.NewError(connect.CodeUnauthenticated, errors.New("no credential")), ErrFinal, true, "no credential"},
		"not a router":       {connect.NewError(connect.CodePermissionDenied, errors.New("a host's")), ErrFinal, true, "a host's"},
		"another version":    {accepted(&apiv1.RouterJoined{Protocol: 9000}), ErrFinal, true, "upgrade"},
		"another protocol":   {&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Begin{}}, ErrProtocol, false, "not Joined"},
		"nobody":             {connect.NewError(connect.CodeUnavailable, io.EOF), io.EOF, false, "EOF"},
		"of another network": {errors.New("tls: " + trust.ErrOtherNetwork.Error()), nil, true, trust.ErrOtherNetwork.Error()},
	} {
		f := newFake(api.NewControllers([]string{"http://127.0.0.1:1"}))
		f.says(c.answer)
		joined, err := f.hold(t.Context())
		if joined || err == nil || c.kind != nil && !errors.Is(err, c.kind) || Outside(err) != c.outside || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: joined %v, %q (outside: %v), want %v %q (outside: %v)", name, joined, err, Outside(err), c.kind, c.says, c.outside)
		}
		if _, is := c.answer.(*connect.Error); is && connect.CodeOf(err) == connect.CodeUnknown {
			t.Errorf("%s: %v is no error of the call any more", name, err)
		}
		if f.parted != 0 {
			t.Errorf("%s: parted without a session", name)
		}
	}
}

// What the join comes to is told to whom it concerns: a standby's word of who leads, a refusal's of a router that is gone.
func TestARefusalIsPassedOn(t *testing.T) {
	all := api.NewControllers([]string{"http://127.0.0.1:1"})
	f := newFake(all)
	f.says(no(&apiv1.Refused{Standby: true, Leader: []string{"http://127.0.0.1:3"}, Controllers: &apiv1.Controllers{Endpoints: []string{"http://127.0.0.1:2", "http://127.0.0.1:3"}}}))
	f.hold(t.Context())
	if next, _ := all.Next(); next != "http://127.0.0.1:3" || len(all.All()) != 3 || len(f.refusals) != 0 {
		t.Errorf("next is %s of %v; refusals %v", next, all.All(), f.refusals)
	}
	f.says(no(&apiv1.Refused{NoRouter: "r7"}))
	f.hold(t.Context())
	if len(f.refusals) != 1 || f.refusals[0].NoRouter != "r7" {
		t.Errorf("refusals: %v", f.refusals)
	}
	alone := newFake(nil) // whose way to a controller is found otherwise
	alone.says(no(&apiv1.Refused{Standby: true, Leader: []string{"http://127.0.0.1:3"}}))
	if _, err := alone.hold(t.Context()); !errors.Is(err, ErrStandby) {
		t.Error(err)
	}
}

func TestASessionTakesOrdersUntilItEnds(t *testing.T) {
	order := &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Commit{Commit: &apiv1.Commit{Generation: 7}}}
	more := &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Controllers{Controllers: &apiv1.Controllers{Endpoints: []string{"http://127.0.0.1:2"}}}}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		last any
		want error
		says string
	}{
		"the stream breaks":      {broken, broken, "broken"},
		"the controller ends it": {io.EOF, ErrClosed, "closed the stream"},
		"with a word":            {no(&apiv1.Refused{Reason: "term is over"}), nil, "the controller ended the session: term is over"},
	} {
		all := api.NewControllers([]string{"http://127.0.0.1:1"})
		f := newFake(all)
		f.says(accepted(&apiv1.RouterJoined{NetworkId: "a"}), order, more, order, c.last)
		joined, err := f.hold(t.Context())
		if !joined || !strings.Contains(err.Error(), c.says) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: joined %v, %v", name, joined, err)
		}
		if len(f.took) != 2 || !slices.Contains(all.All(), "http://127.0.0.1:2") || f.parted != 1 {
			t.Errorf("%s: orders %v, controllers %v, parted %d times", name, f.took, all.All(), f.parted)
		}
		if best, _ := all.Best(); best != "http://127.0.0.1:1" {
			t.Errorf("%s: %s is thought to lead", name, best)
		}
		<-f.session.Ended()
		<-f.half
	}
}

func TestAnOwnerThatCannotGoOnEndsTheSession(t *testing.T) {
	ends := errors.New("no place")
	f := newFake(nil)
	f.m.Joined = func(context.Context, *Session[*apiv1.RouterReport], *apiv1.RouterJoined) error { return ends }
	f.says(accepted(&apiv1.RouterJoined{}))
	if joined, err := f.hold(t.Context()); !joined || !errors.Is(err, ends) || f.parted != 1 {
		t.Errorf("at its begin: joined %v, %v, parted %d times", joined, err, f.parted)
	}
	f = newFake(nil)
	f.m.Order = func(*apiv1.RouterOrder) error { return ends }
	f.says(accepted(&apiv1.RouterJoined{}), &apiv1.RouterOrder{})
	if joined, err := f.hold(t.Context()); !joined || !errors.Is(err, ends) || f.parted != 1 {
		t.Errorf("at an order: joined %v, %v, parted %d times", joined, err, f.parted)
	}
}

// begun is a session that has joined, until the test ends it.
func begun(t *testing.T) (f *fake, s *Session[*apiv1.RouterReport], ended chan error) {
	f, ended = newFake(nil), make(chan error, 1)
	came := make(chan *Session[*apiv1.RouterReport], 1)
	f.m.Joined = func(_ context.Context, s *Session[*apiv1.RouterReport], _ *apiv1.RouterJoined) error {
		came <- s
		return nil
	}
	f.says(accepted(&apiv1.RouterJoined{}))
	go func() {
		_, err := f.hold(t.Context())
		ended <- err
	}()
	s = <-came
	<-f.sent // the join
	return f, s, ended
}

func report(n uint64) *apiv1.RouterReport {
	return &apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: &apiv1.Applied{Generation: n}}}
}

// Finish is how a host leaves: its last word arrives, and the controller ends the stream.
func TestWhatWasSentBeforeTheEndArrives(t *testing.T) {
	f, s, ended := begun(t)
	for n := range uint64(100) {
		s.Send(report(n))
	}
	s.Finish()
	s.Finish()
	if s.Send(report(100)) {
		t.Error("something is sent behind the end")
	}
	<-f.half
	for n := range uint64(100) {
		if got := (<-f.sent).GetApplied().GetGeneration(); got != n {
			t.Fatalf("%d came in the place of %d", got, n)
		}
	}
	select {
	case <-s.Ended():
		t.Error("the stream has ended before the controller ended it")
	default:
	}
	close(f.orders)
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	<-s.Ended()
}

// Who begins another session, with another key for instance, is not told that the controller is away.
func TestAnOwnerThatBeginsAnotherSessionHasLostNone(t *testing.T) {
	_, s, ended := begun(t)
	s.End()
	if err := <-ended; !errors.Is(err, errAgain) {
		t.Error(err)
	}
}

func TestAControllerThatDoesNotReadLosesTheSession(t *testing.T) {
	f, s, ended := begun(t)
	n := uint64(0)
	for s.Send(report(n)) {
		if n++; n > uint64(4*outLimit+cap(f.sent)) {
			t.Fatalf("%d reports wait for it", n)
		}
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-s.Ended()
}
