package chaos

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/lab/file"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func world(t interface{ Fatal(...any) }) World {
	text, err := os.ReadFile("../../examples/moves.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := file.Parse("moves.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return WorldOf(f)
}

func text(t *testing.T, batches []Batch) string {
	var b strings.Builder
	if err := WriteSchedule(&b, batches); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheSameSeedGivesTheSameEvents(t *testing.T) {
	w := world(t)
	o := Options{Seed: 5, Duration: time.Minute, Moves: true}
	first := text(t, Schedule(w, o))
	if text(t, Schedule(w, o)) != first {
		t.Error("one seed gave two lists")
	}
	o.Seed++
	if text(t, Schedule(w, o)) == first {
		t.Error("two seeds gave one list")
	}
}

// After each batch all that was broken is whole again, and each host has one link.
func TestEachBatchEndsWhole(t *testing.T) {
	w := world(t)
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Seed: rapid.Uint64().Draw(t, "seed"), Duration: time.Minute, Moves: rapid.Bool().Draw(t, "moves")}
		up := map[string]bool{}
		for h, routers := range w.Uplinks {
			up[h+" "+routers[0]] = true
		}
		for _, b := range Schedule(w, o) {
			broken := map[string]string{}
			for i, e := range b.Events {
				if i > 0 && e.At < b.Events[i-1].At {
					t.Fatalf("%s: %v comes after %v", b.Kind, e, b.Events[i-1])
				}
				follow(t, e.Do, up, broken)
			}
			if len(broken) > 0 {
				t.Fatalf("%s leaves %v broken: %v", b.Kind, broken, b.Events)
			}
			for h := range w.Uplinks {
				links := 0
				for l, ok := range up {
					if ok && strings.HasPrefix(l, h+" ") {
						links++
					}
				}
				if links != 1 {
					t.Fatalf("%s leaves %s with %d links: %v", b.Kind, h, links, b.Events)
				}
			}
		}
	})
}

// follow keeps account of what is broken.
func follow(t *rapid.T, do string, up map[string]bool, broken map[string]string) {
	verb, what, _ := strings.Cut(do, " ")
	words := strings.Fields(what)
	pairs := map[string][2]string{ // verb that breaks, or repairs, and what
		"crash": {"process", "break"}, "serve": {"process", "repair"},
		"freeze": {"process", "break"}, "thaw": {"process", "repair"},
		"wait-drain": {"drain", "break"}, "shed": {"drain", "break"}, "undrain": {"drain", "repair"},
		"kill": {"daemon", "break"}, "end": {"daemon", "break"}, "start": {"daemon", "repair"},
		"cut": {"cut", "break"},
	}
	switch p, ok := pairs[verb]; {
	case verb == "unplug":
		if !up[what] {
			t.Fatalf("%s: it is not plugged in", do)
		}
		up[what] = false
	case verb == "heal" && broken["cut "+what] != "":
		delete(broken, "cut "+what)
	case verb == "heal":
		if up[what] {
			t.Fatalf("%s: nothing is wrong with it", do)
		}
		up[what] = true
	case ok && p[1] == "break":
		broken[p[0]+" "+what] = do
	case ok:
		if broken[p[0]+" "+what] == "" {
			t.Fatalf("%s: nothing is wrong with it", do)
		}
		delete(broken, p[0]+" "+what)
	case verb == "link" && strings.Contains(do, "delay 0ms loss 0%"):
		delete(broken, "weather "+words[0])
	case verb == "link":
		broken["weather "+words[0]] = do
	}
}

func TestEveryKindIsDrawn(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Schedule(world(t), Options{Seed: 1, Duration: 10 * time.Minute, Moves: true}) {
		for _, k := range strings.Split(b.Kind, and) {
			seen[k] = true
		}
	}
	for _, k := range Kinds() {
		if !seen[k] {
			t.Errorf("nothing of kind %q in ten minutes", k)
		}
	}
}

func TestOnlyWhatIsAskedForIsDrawn(t *testing.T) {
	o := Options{Seed: 1, Duration: time.Minute, Moves: true, Only: []string{"hard move"}}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	for _, b := range Schedule(world(t), o) {
		if b.Kind != "hard move" {
			t.Errorf("%s", b.Kind)
		}
	}
	o.Only = []string{"rain"}
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "rain") {
		t.Error(fmt.Sprint(err))
	}
}
