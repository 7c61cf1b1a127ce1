package demo

import (
	"strings"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

var began = time.UnixMilli(1_000_000)

// event is one that happened so many milliseconds after the step began.
func event(ms int64, kind, host, text string) *apiv1.Event {
	return &apiv1.Event{UnixMs: began.UnixMilli() + ms, Kind: kind, Subject: "web", Text: host + " tcp/80: " + text, Attrs: map[string]string{"host": host}}
}

// happened is a step's time: two instances were held not ready, one of them twice.
func happened() []*apiv1.Event {
	return []*apiv1.Event{
		event(-20, "instance.unready", "s1", "before the step"),
		event(5, "service.weight", "s1", "weight of s1 is 3"),
		event(10, "instance.unready", "s3", "instance is not ready: accept queue does not move"),
		event(1010, "instance.ready", "s3", "instance is ready"),
		event(1500, "instance.unready", "s2", "instance is not ready: accept queue is full"),
		event(2100, "instance.unready", "s3", "instance is not ready: accept queue does not move"),
	}
}

// TestARowSaysWhoWasHeldNotReadyWhileItCounted, but not where a step is about that.
func TestARowSaysWhoWasHeldNotReadyWhileItCounted(t *testing.T) {
	for what, c := range map[string]struct {
		all   []*apiv1.Event
		stops bool
		want  string
	}{
		"two were held":           {happened(), false, "72 : 28; held not ready meanwhile: s2, s3"},
		"the step stops a server": {happened(), true, "72 : 28"},
		"held before it":          {happened()[:2], false, "72 : 28"},
		"one came back":           {happened()[3:4], false, "72 : 28"},
		"nothing":                 {nil, false, "72 : 28"},
	} {
		r := Result{Step: "b", Claim: "weights 3:1:0 obeyed", Seen: "72 : 28", Holds: true}
		r.hear(ofInstances(c.all, began), c.stops)
		var out strings.Builder
		writeTable(&out, []Result{r})
		if row := strings.TrimSpace(out.String()); !strings.HasSuffix(row, "yes    "+c.want) {
			t.Errorf("%s: the row is\n%s\nwant it to end with %q", what, row, c.want)
		}
		if strings.Contains(out.String(), "The controller told") {
			t.Errorf("%s: it holds, and events are printed:\n%s", what, &out)
		}
	}
}

// TestAStepThatDoesNotHoldPrintsItsEvents: those of instances since it began, with their times, in order.
func TestAStepThatDoesNotHoldPrintsItsEvents(t *testing.T) {
	holds, fails, silent := Result{Step: "a", Claim: "it is there", Holds: true}, Result{Step: "b", Claim: "weights obeyed"}, Result{Step: "f", Claim: "one stopped"}
	holds.hear(ofInstances(happened(), began), false)
	fails.hear(ofInstances(happened(), began), false)
	silent.hear(nil, true)
	var out strings.Builder
	if Report(&out, []Result{holds, fails, silent}) {
		t.Error("reported as if all held")
	}
	_, below, _ := strings.Cut(out.String(), "\n\n")
	at := func(ms int64) string { return began.Add(time.Duration(ms) * time.Millisecond).Format("15:04:05.000") }
	want := "b. weights obeyed does not hold. The controller told meanwhile:\n" +
		"   " + at(10) + "  instance.unready  s3 tcp/80: instance is not ready: accept queue does not move\n" +
		"   " + at(1010) + "  instance.ready  s3 tcp/80: instance is ready\n" +
		"   " + at(1500) + "  instance.unready  s2 tcp/80: instance is not ready: accept queue is full\n" +
		"   " + at(2100) + "  instance.unready  s3 tcp/80: instance is not ready: accept queue does not move\n" +
		"\nf. one stopped does not hold. The controller told meanwhile:\n   nothing\n"
	if below != want {
		t.Errorf("below the table:\n%s\nwant:\n%s", below, want)
	}
}

// TestAllStepsMustHold: a show that ended early does not hold.
func TestAllStepsMustHold(t *testing.T) {
	var results []Result
	for _, s := range steps {
		results = append(results, Result{Step: s.name, Claim: s.claim, Holds: true})
	}
	var out strings.Builder
	if !Report(&out, results) || Report(&out, results[:len(results)-1]) {
		t.Errorf("all steps hold: %v; without the last: %v", Report(&out, results), Report(&out, results[:len(results)-1]))
	}
}
