package tune

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each file of testdata is a trace: lines of looks, what an end waited for at each 50 ms, and what was found after each
// interval. With UPDATE=1 what is found is written.
func TestTracesGiveTheSameVerdicts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(text))
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("found:\n%swant:\n%s", got, text)
			}
		})
	}
}

var letters = map[rune]Look{'?': Unknown, 'h': Host, 'c': Credit, 'm': Memory, '|': Path, 'p': Processor, 'f': Free}

// replay reads a trace, and writes it with what is found.
func replay(t *testing.T, text string) string {
	var out strings.Builder
	var j Judge
	now, interval := time.Unix(0, 0), shortest
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "rtt "); ok {
			rtt, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			interval = Interval(rtt)
		}
		seen, _, _ := strings.Cut(line, " > ")
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "rtt ") || seen == "" {
			fmt.Fprintln(&out, line)
			continue
		}
		for _, r := range seen {
			l, ok := letters[r]
			if !ok {
				t.Fatalf("%q is no look", r)
			}
			j.See(now, l, interval)
			now = now.Add(50 * time.Millisecond)
		}
		fmt.Fprintf(&out, "%s > %s\n", seen, cmp.Or(j.Found().String(), "unknown"))
	}
	return out.String()
}

func TestBothAgentsTellWhatBinds(t *testing.T) {
	for _, c := range []struct {
		reads, writes Side
		want          Binding
	}{
		{Side{Host, 0.1}, Side{Free, 0.1}, Source},
		{Side{Host, 0.99}, Side{Free, 0.1}, Source}, // other sessions keep it busy: this one waits for its host
		{Side{Credit, 0.1}, Side{Host, 0.1}, Receiver},
		{Side{Credit, 0.1}, Side{Memory, 0.1}, TakeMemory},
		{Side{Credit, 0.1}, Side{Free, 0.1}, Between},
		{Side{Credit, 0.1}, Side{Free, 0.95}, Writing},
		{Side{Credit, 0.1}, Side{Unknown, 0.1}, Unclear},
		{Side{Memory, 0.1}, Side{Free, 0.1}, SendMemory},
		{Side{Path, 0.3}, Side{Free, 0.3}, Between},
		{Side{Path, 0.95}, Side{Free, 0.3}, Reading},
		{Side{Path, 0.3}, Side{Free, 0.95}, Writing},
		{Side{Processor, 0.97}, Side{Free, 0.3}, Reading},
		{Side{Processor, 0.6}, Side{Free, 0.98}, Writing},
		{Side{Processor, 0.08}, Side{Free, 0.08}, Unclear},
		{Side{Unknown, 1}, Side{Unknown, 1}, Unclear},
	} {
		if got := Bind(c.reads, c.writes); got != c.want {
			t.Errorf("reads %v at %v, writes %v at %v: %v, want %v", c.reads.Found, c.reads.Busy, c.writes.Found, c.writes.Busy, got, c.want)
		}
	}
}

// A session for which an agent had no processor for long gets no verdict from one look.
func TestFewLooksAreNoVerdict(t *testing.T) {
	var j Judge
	for i := range 2 * alike {
		j.See(time.Unix(int64(100*i), 0), Path, shortest)
	}
	if j.Found() != Unknown {
		t.Errorf("%v is found by %d looks in ten minutes", j.Found(), 2*alike)
	}
}
