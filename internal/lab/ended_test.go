package lab

import (
	"errors"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/processes"
)

const hasty = `
name: NAME
nodes:
  r: plain
  h1:
    kind: host
    programs:
      - {name: bad, run: "sh -c 'echo no such option; exit 3'", start: manual}
      - {name: short, run: "true", start: manual}
      - {name: behind, run: "sh -c 'sleep 1001 & exit 0'", start: manual}
      - {name: long, run: sleep 1000, start: manual}
  h2: host
links:
  - [h1, r]
  - [r, h2]
`

func TestAProgramThatEndsAtOnceIsNoticed(t *testing.T) {
	l := bareLab(t, hasty, "hasty")
	for _, c := range []struct {
		program string
		done    bool
		said    []string
	}{
		{"long", false, nil},
		{"behind", false, nil},
		{"bad", false, []string{"h1/bad ended at once (exit status 3)", "no such option"}},
		{"short", true, []string{"h1/short ended at once (exit status 0)"}},
	} {
		a, err := file.ParseAction("start h1/" + c.program)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Open(l.File.Name, Options{}) // as the command does: it knows nothing of the others
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Do(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		err = again.Stays(t.Context(), a)
		var ended *processes.Ended
		if errors.As(err, &ended) != (c.said != nil) || ended != nil && ended.Done != c.done {
			t.Errorf("start h1/%s: %v", c.program, err)
		}
		for _, want := range c.said {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("start h1/%s: %v, want %q", c.program, err, want)
			}
		}
	}
}
