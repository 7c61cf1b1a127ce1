package poll

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestACheckIsCalledUntilItIsContent(t *testing.T) {
	calls := 0
	err := Every(t.Context(), 0, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestAFinalErrorEndsTheWaitAsItIs(t *testing.T) {
	calls, dead := 0, errors.New("it has ended")
	if err := Until(t.Context(), func() error { calls++; return Final(dead) }); err != dead || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if Final(nil) != nil {
		t.Error("no error is final")
	}
}

func TestTheLastErrorIsToldWhenTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Until(ctx, func() error { cancel(); return errors.New("r1 has not joined") })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "r1 has not joined") {
		t.Errorf("%v", err)
	}
}
