package session

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
)

// read sends what a session has until as many orders came, and gives why it ended.
func read(s *Session[int], count int) (got []int, err error) {
	full := errors.New("that many came")
	err = s.Write(func(o *int) error {
		if got = append(got, *o); len(got) == count {
			return full
		}
		return nil
	})
	if errors.Is(err, full) {
		err = nil
	}
	return got, err
}

func TestOrdersComeInOrder(t *testing.T) {
	s := New[int](t.Context(), 3)
	for i := range 3 {
		if !s.Send(&i) {
			t.Fatalf("order %d has no room", i)
		}
	}
	if got, err := read(s, 3); err != nil || !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("%v, %v", got, err)
	}
}

// Whoever does not read loses the stream, and holds nobody up.
func TestAFullQueueEndsTheSession(t *testing.T) {
	s := New[int](t.Context(), 2)
	for i, want := range []bool{true, true, false} {
		if got := s.Send(&i); got != want {
			t.Errorf("order %d of two: %v", i+1, got)
		}
	}
	if !errors.Is(context.Cause(s.Context()), ErrSlow) {
		t.Errorf("it ended by %v", context.Cause(s.Context()))
	}
}

// The peer hears why the controller ended its stream; what it ended itself is its own matter.
func TestWhyAStreamEnds(t *testing.T) {
	for _, cause := range []error{ErrSlow, ErrReplaced, ErrRevoked, ErrTermOver} {
		s := New[int](t.Context(), 1)
		s.End(cause)
		if err := s.Serve(func(*int) error { return nil }, func() error { return errors.New("the connection is closed") }); !errors.Is(err, cause) {
			t.Errorf("%v: ended by %v", cause, err)
		}
	}
	s := New[int](t.Context(), 1)
	broken := errors.New("broken")
	if err := s.Serve(func(*int) error { return nil }, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a broken stream: %v", err)
	}
	if s.Context().Err() == nil {
		t.Error("the stream is over, and the session goes on")
	}
}

func TestMessagesAreHandledUntilThePeerEnds(t *testing.T) {
	left, handled := []int{1, 2, 3}, 0
	receive := func() (*int, error) {
		if len(left) == 0 {
			return nil, io.EOF
		}
		m := left[0]
		left = left[1:]
		return &m, nil
	}
	if err := ReadAll(receive, func(m *int) error { handled += *m; return nil }); err != nil || handled != 6 {
		t.Errorf("%v, %d", err, handled)
	}
	left = []int{1, 2}
	refused := errors.New("refused")
	if err := ReadAll(receive, func(*int) error { return refused }); !errors.Is(err, refused) || len(left) != 1 {
		t.Errorf("%v, %v left", err, left)
	}
	if Ahead(0) != 0 {
		t.Error("who tells no time is ahead")
	}
}
