package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// An Event is one thing that happens: an action of the lab, or one of the verbs of this package.
type Event struct {
	At time.Duration // after the batch begins
	Do string
}

// A Batch is what happens between two looks. When it is over the network is whole.
type Batch struct {
	Kind   string
	Events []Event
}

// A schedule is drawn from a seed. It knows where each host hangs.
type schedule struct {
	rng    *rand.Rand
	world  World
	on     map[string]int // which of its uplinks a host has
	kinds  []drawer
	taken  map[string]bool // what this batch breaks already
	events []Event
}

// Options say what may be drawn.
type Options struct {
	Seed     uint64
	Duration time.Duration // nothing begins after it
	Moves    bool          // hosts move, servers shed
	Only     []string      // kinds of trouble; nil: all
}

// Kinds are the names of all kinds of trouble.
func Kinds() (names []string) {
	for _, d := range drawers() {
		names = append(names, d.kind)
	}
	return names
}

// Check says what cannot be drawn.
func (o Options) Check() error {
	for _, name := range o.Only {
		if !slices.Contains(Kinds(), name) {
			return fmt.Errorf("no kind of trouble is called %q; expected one of %s", name, strings.Join(Kinds(), ", "))
		}
	}
	return nil
}

// drawers are the kinds that may be drawn.
func (o Options) drawers() (all []drawer) {
	for _, d := range drawers() {
		if (o.Moves || !d.moves) && (len(o.Only) == 0 || slices.Contains(o.Only, d.kind)) {
			all = append(all, d)
		}
	}
	return all
}

// lookTime is what the plan reserves for a look.
const lookTime = 400 * time.Millisecond

// Schedule draws what happens: the same seed gives the same.
func Schedule(w World, o Options) (batches []Batch) {
	s := &schedule{rng: rand.New(rand.NewPCG(o.Seed, 0x5ca77010d)), world: w, on: map[string]int{}, kinds: o.drawers()}
	for length := time.Duration(0); length < o.Duration; {
		b := s.batch()
		batches = append(batches, b)
		length += b.Events[len(b.Events)-1].At + lookTime
	}
	return batches
}

// A drawer adds the events of one kind of trouble, from the offset; false where it has nothing to break.
type drawer struct {
	kind   string
	weight int
	moves  bool
	draw   func(*schedule, time.Duration) bool
}

// drawers are all kinds, with how often each is drawn.
func drawers() []drawer {
	return []drawer{
		{"hard move", 4, true, (*schedule).hard},
		{"make before break", 4, true, (*schedule).soft},
		{"both ends move", 3, true, (*schedule).both},
		{"chain of moves", 2, true, (*schedule).chain},
		{"link down and up", 3, false, (*schedule).replug},
		{"process killed", 3, false, (*schedule).crash},
		{"process stopped", 2, false, (*schedule).freeze},
		{"drain to wait", 2, false, (*schedule).drain},
		{"drain to shed", 2, true, (*schedule).shed},
		{"link swallows", 3, false, (*schedule).cut},
		{"path swallows", 2, false, (*schedule).trunk},
		{"loss and delay", 2, false, (*schedule).weather},
		{"host daemon dies", 2, false, (*schedule).hostd},
		{"router daemon dies", 2, false, (*schedule).routerd},
		{"controller dies", 2, false, (*schedule).controld},
		{"weights change", 1, false, (*schedule).weight},
	}
}

// and joins the names of two kinds.
const and = " + "

// nothing is the kind where everything that could be drawn is broken already.
const nothing = "nothing"

// batch draws one kind of trouble, in one of three cases a second beside it.
func (s *schedule) batch() Batch {
	s.taken, s.events = map[string]bool{}, nil
	kind := s.one(0)
	if s.rng.IntN(3) == 0 && len(s.kinds) > 1 {
		if more := s.one(s.between(0, 300)); more != nothing {
			kind += and + more
		}
	}
	slices.SortStableFunc(s.events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return Batch{Kind: kind, Events: s.events}
}

// one draws until there is something to break: a batch that has broken much may have none left of a kind.
func (s *schedule) one(from time.Duration) string {
	total := 0
	for _, d := range s.kinds {
		total += d.weight
	}
	for range 100 {
		n := s.rng.IntN(total)
		i := slices.IndexFunc(s.kinds, func(d drawer) bool { n -= d.weight; return n < 0 })
		if d := s.kinds[i]; d.draw(s, from) {
			return d.kind
		}
	}
	return nothing
}

// between draws a time in milliseconds.
func (s *schedule) between(least, most int) time.Duration {
	return time.Duration(least+s.rng.IntN(most-least+1)) * time.Millisecond
}

// take claims something to break; false where this batch breaks it already.
func (s *schedule) take(names ...string) bool {
	for _, n := range names {
		if s.taken[n] {
			return false
		}
	}
	for _, n := range names {
		s.taken[n] = true
	}
	return true
}

func (s *schedule) pick(names []string) string { return names[s.rng.IntN(len(names))] }

func (s *schedule) at(t time.Duration, format string, args ...any) {
	s.events = append(s.events, Event{At: t, Do: fmt.Sprintf(format, args...)})
}
