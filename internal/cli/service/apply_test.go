package service

import (
	"errors"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/controller/manifest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A controller that takes no notice of boost has changed nothing where it was only to look. One that leads since then has changed
// the services, and it is said how many.
func TestWhatAnOlderControllerHasChangedIsSaid(t *testing.T) {
	safety.Test(t, safety.Record)
	set := &manifest.Set{Sites: []*apiv1.BoostSiteSpec{{Name: "east"}}}
	resp := &apiv1.ApplyResponse{Changes: []*apiv1.ServiceChange{{Name: "web", Action: "create"}}, Done: 1}
	for looked, want := range map[bool]string{true: "nothing was changed", false: "1 change of services was made"} {
		err := noticed(resp, set, looked)
		var known *exit.Error
		if !errors.As(err, &known) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "and nothing was changed") != looked {
			t.Errorf("it was only to look: %v: %v", looked, err)
		}
	}
	resp.Changes = append(resp.Changes, &apiv1.ServiceChange{Kind: "boost site", Name: "east"})
	if err := noticed(resp, set, false); err != nil {
		t.Errorf("one that knows boost: %v", err)
	}
}

// An apply whose answer was lost may have been carried out; one that reached nobody was not.
func TestAnApplyWithoutAnAnswerIsInDoubt(t *testing.T) {
	for text, doubt := range map[string]bool{
		"no answer from here: it has not answered in time": true, "no answer from here: the connection broke off": true,
		"no answer from here: nothing listens there": false, "nothing was changed: the store is full": false,
	} {
		err := inDoubt(exit.Failf(exit.Unreachable, "another endpoint", "%s", text))
		var known *exit.Error
		if !errors.As(err, &known) || known.Code != exit.Unreachable || err.Error() != text || strings.Contains(known.Hint, "not known") != doubt {
			t.Errorf("%s: %v, hint %q", text, err, known.Hint)
		}
	}
}
