package file

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// unsettled is a ring of four emulated routers between two hosts.
const unsettled = `
name: NAME
nodes: {h1: host, r1: emulated, r2: emulated, r3: emulated, r4: emulated, h2: host}
links:
  - [h1, r1]
  - {ends: [r1, r2], delay: 2ms}
  - {ends: [r2, r4], delay: 2ms}
  - {ends: [r1, r3], delay: 1ms, cost: 5}
  - [r3, r4]
  - [r4, h2]
`

func unrest(t *testing.T, seed int, of string) *File {
	t.Helper()
	text := strings.Replace(unsettled, "NAME", "unrest", 1) + fmt.Sprintf(
		"timeline:\n  - {at: 500ms, do: fail r1}\n  - chaos: {seed: %d, rate: 50, from: 1s, until: 5s, repair: 300ms, of: %s}\n", seed, of)
	f, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestChaosIsTheSameForTheSameSeed(t *testing.T) {
	const all = "[link, router, nic]"
	first := wholeTimeline(unrest(t, 7, all).Timeline)
	if again := wholeTimeline(unrest(t, 7, all).Timeline); again != first {
		t.Errorf("seed 7 gives\n%s\nand\n%s", first, again)
	}
	if other := wholeTimeline(unrest(t, 8, all).Timeline); other == first {
		t.Error("seeds 7 and 8 give the same")
	}
	for _, want := range []string{"500ms fail r1, ", "fail r2", "fail r1 r2", "fail r4:r2", "repair r3:r4"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in %s", want, first)
		}
	}
	if strings.Contains(first, "h1") {
		t.Errorf("hosts are cut off: %s", first)
	}
}

func TestChaosMendsWhatItBrokeAndBreaksNothingTwice(t *testing.T) {
	steps := unrest(t, 3, "[link]").Timeline[1:]
	broken, faults := map[string]bool{}, 0
	for i, s := range steps {
		what := strings.TrimPrefix(strings.TrimPrefix(s.Action.String(), "fail "), "repair ")
		if down := s.Action.Verb == "fail"; down {
			faults++
			if broken[what] || s.At < time.Second || s.At > 5*time.Second {
				t.Errorf("step %d at %v: %v", i, s.At, s.Action)
			}
		} else if !broken[what] {
			t.Errorf("step %d: %v mends what is whole", i, s.Action)
		}
		broken[what] = s.Action.Verb == "fail"
	}
	for what, still := range broken {
		if still {
			t.Errorf("%s stays broken", what)
		}
	}
	if faults < 20 || 2*faults != len(steps) {
		t.Errorf("%d faults in %d steps", faults, len(steps))
	}
}

func TestATraceIsPlayedFromItsTimeOn(t *testing.T) {
	text := strings.Replace(unsettled, "NAME", "traced", 1) + "timeline:\n  - {at: 10s, replay: faults.txt}\n"
	f, err := ParseWith("t.yaml", []byte(text), map[string][]byte{"faults.txt": []byte("# failures\n2 fail r1 r2\n\n1.5s cut r3 r4\n2.5 repair r1 r2\n")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := wholeTimeline(f.Timeline), "11.5s cut r3 r4, 12s fail r1 r2, 12.5s repair r1 r2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func FuzzTraceLine(f *testing.F) {
	for _, line := range []string{"1.5 fail r1 r2", "2s cut a", "# x", "", "1e300 fail a", "NaN unite", "1 partition a|b"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		at, a, err := parseTraced(line)
		if err != nil || a == nil {
			return
		}
		if at < 0 || at > maxAt {
			t.Errorf("%q is at %v", line, at)
		}
		if a.isFault() {
			if again, err := ParseAction(a.String()); err != nil || again.String() != a.String() {
				t.Errorf("%q reads as %q, and that as %q: %v", line, a, again, err)
			}
		}
	})
}
