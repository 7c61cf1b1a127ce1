package serving

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

func triple(port uint16) sid.Triple {
	return sid.Triple{Service: sid.ServiceID{SS: 1, Suffix: 1 << 20}, Proto: sid.TCP, Port: port}
}

// The count must agree with a plain map of open sockets, and a triple is told up exactly when its
// first socket comes and down exactly when its last one goes.
func TestCountAgreesWithTheOpenSockets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, open := NewSockets(), map[uint64]sid.Triple{}
		up := map[sid.Triple]bool{}
		serves := func(tr sid.Triple) bool {
			for _, o := range open {
				if o == tr {
					return true
				}
			}
			return false
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			cookie := rapid.Uint64Range(1, 8).Draw(t, "cookie")
			tr := triple(rapid.Uint16Range(80, 82).Draw(t, "port"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				if old, ok := open[cookie]; ok && old != tr {
					continue // a socket has one address for its life
				}
				open[cookie] = tr
				if first := s.Register(cookie, tr, Owner{}); first != !up[tr] {
					t.Fatalf("register %v: first=%v, was up=%v", tr, first, up[tr])
				}
				up[tr] = true
			case 2, 3:
				was, known := open[cookie]
				delete(open, cookie)
				got, last := s.Unregister(cookie)
				if known && got != was || last != (known && !serves(was)) {
					t.Fatalf("unregister %d: %v last=%v, open %v", cookie, got, last, open)
				}
				if last {
					delete(up, got)
				}
			case 4:
				dump := rapid.MapOf(rapid.Uint64Range(1, 8), rapid.Map(rapid.Uint16Range(80, 82), triple)).Draw(t, "dump")
				came, went := s.Replace(0, dump, nil)
				for _, tr := range came {
					if up[tr] {
						t.Fatalf("%v came, but was up", tr)
					}
					up[tr] = true
				}
				for _, tr := range went {
					if !up[tr] {
						t.Fatalf("%v went, but was not up", tr)
					}
					delete(up, tr)
				}
				open = maps.Clone(dump)
				if open == nil {
					open = map[uint64]sid.Triple{}
				}
			}
			n := map[sid.Triple]bool{}
			s.Triples(func(tr sid.Triple) { n[tr] = true })
			if !maps.Equal(n, up) {
				t.Fatalf("serves %v, told up %v", n, up)
			}
		}
	})
}

func waiting(cookies ...uint64) map[uint64]bool {
	m := map[uint64]bool{}
	for _, c := range cookies {
		m[c] = true
	}
	return m
}

// Looks come each 50 ms.
const tick = 50 * time.Millisecond

// look is what a queue of one listener shows, of a program of which nothing is known.
func look(queue, backlog uint32, names map[uint64]bool) Look {
	return Look{Elapsed: tick, Queue: queue, Backlog: backlog, Waiting: names}
}

func TestQueueVerdicts(t *testing.T) {
	stuck, full := "accept queue does not move", "accept queue is full"
	tests := map[string]struct {
		looks []Look
		want  string
	}{
		"empty":                      {[]Look{look(0, 8, nil)}, ""},
		"a moment":                   {[]Look{look(3, 8, nil), look(3, 8, waiting(1, 2, 3)), look(0, 8, nil)}, ""},
		"busy but accepting":         {[]Look{look(1, 8, nil), look(1, 8, waiting(1)), look(1, 8, waiting(2)), look(1, 8, waiting(3)), look(1, 8, waiting(4)), look(1, 8, waiting(5))}, ""},
		"stopped":                    {[]Look{look(1, 8, nil), look(2, 8, waiting(1, 2)), look(2, 8, waiting(1, 2)), look(3, 8, waiting(1, 2, 3))}, stuck},
		"stopped, then drained":      {[]Look{look(1, 8, nil), look(1, 8, waiting(1)), look(1, 8, waiting(1)), look(1, 8, waiting(1)), look(0, 8, nil)}, ""},
		"stopped, then accepts":      {[]Look{look(2, 8, nil), look(2, 8, waiting(1, 2)), look(2, 8, waiting(1, 2)), look(2, 8, waiting(1, 2)), look(1, 8, waiting(2))}, ""},
		"full":                       {[]Look{look(9, 8, nil), look(9, 8, waiting(1, 2))}, full},
		"full for a moment":          {[]Look{look(9, 8, nil), look(2, 8, waiting(1, 2))}, ""},
		"full but accepting":         {[]Look{look(9, 8, nil), look(9, 8, waiting(1, 2)), look(9, 8, waiting(2, 3))}, ""},
		"clients gave up and others": {[]Look{look(1, 8, nil), look(1, 8, waiting(1)), look(1, 8, waiting(1)), look(0, 8, nil), look(1, 8, nil)}, ""},
	}
	for name, c := range tests {
		var q Queue
		var got Verdict
		for _, l := range c.looks {
			got = q.Look(l)
		}
		if got.Reason != c.want {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}

// serve is a program that takes so long for each connection, one after the other, of which n wait from the beginning and
// are replaced as they are taken. It returns how many looks found it late, and how many of these only slow.
func serve(took time.Duration, looks int, ran func(i int) Program) (late, slow int) {
	var q Queue
	first := uint64(1)
	left := took
	for i := range looks {
		p := ran(i)
		if !p.Stopped {
			if left -= tick - p.Starved; left <= 0 {
				left, first = took, first+1
			}
		}
		v := q.Look(Look{Elapsed: tick, Queue: 3, Backlog: 128, Waiting: waiting(first, first+1, first+2), Program: p})
		if v.Reason != "" {
			late++
		}
		if v.Slow {
			slow++
		}
	}
	return late, slow
}

// TestAProgramIsJudgedByItsOwnPaceAndProcessor, for 20 s each.
func TestAProgramIsJudgedByItsOwnPaceAndProcessor(t *testing.T) {
	runs := func(int) Program { return Program{Known: true} }
	if late, _ := serve(250*time.Millisecond, 400, runs); late != 0 {
		t.Errorf("250 ms a request: late at %d looks", late)
	}
	// One false alarm, of less than a second, until its pace is known.
	if late, slow := serve(time.Second, 400, runs); late > 11 || slow != late {
		t.Errorf("a second a request: late at %d of 400 looks, only slow at %d; want at most 11, all slow", late, slow)
	}
	if late, _ := serve(50*time.Millisecond, 400, func(i int) Program {
		if i%40 < 20 { // no processor for a second, each two
			return Program{Known: true, Starved: tick}
		}
		return Program{Known: true}
	}); late != 0 {
		t.Errorf("without a processor for a second each two: late at %d looks", late)
	}
	if late, slow := serve(50*time.Millisecond, 24, func(i int) Program {
		return Program{Known: true, Stopped: i >= 20}
	}); late < 1 || late > 2 || slow != 0 {
		t.Errorf("stopped 4 looks ago: late at %d looks, slow at %d; want it noticed at the third or fourth, and not as slow", late, slow)
	}
	late, slow := serve(time.Hour, 400, runs)
	if late < 380 || slow > 120 {
		t.Errorf("one that hangs: late at %d of 400 looks, slow at %d; want it late after half a second, and no longer only slow after five", late, slow)
	}
}

// TestASleepOfTheDaemonIsNoFaultOfTheProgram: the next look counts a tenth of a second at most.
func TestASleepOfTheDaemonIsNoFaultOfTheProgram(t *testing.T) {
	var q Queue
	for i := range 4 {
		l := Look{Elapsed: time.Minute, Queue: 1, Backlog: 128, Waiting: waiting(1), Program: Program{Known: true}}
		if v := q.Look(l); v.Reason != "" {
			t.Fatalf("look %d: %q", i, v.Reason)
		}
	}
}

// A group is one look after another: the queue of each listener, and what waits in all of them.
type groupLook struct {
	queues  []uint32
	waiting map[uint64]bool
}

// run gives the group the looks, at programs that all do the same.
func (g *Group) run(looks []groupLook, p Program) (got Verdict) {
	for _, l := range looks {
		each := map[uint64]Length{}
		for i, q := range l.queues {
			each[uint64(i)] = Length{Queue: q, Backlog: 8, Program: p}
		}
		got = g.Look(tick, each, l.waiting)
	}
	return got
}

func TestListenersThatDoNotAcceptAreCounted(t *testing.T) {
	unknown, stopped, partly := Program{}, Program{Known: true, Stopped: true}, Program{Known: true, Partly: true}
	one := []groupLook{{[]uint32{1, 0}, nil}, {[]uint32{1, 0}, waiting(1)}, {[]uint32{1, 0}, waiting(1)}, {[]uint32{1, 0}, waiting(1)}}
	busy := []groupLook{{[]uint32{1, 1}, nil}, {[]uint32{1, 2}, waiting(1, 2, 3)}, {[]uint32{1, 1}, waiting(1, 4)},
		{[]uint32{2, 0}, waiting(1, 5)}, {[]uint32{2, 1}, waiting(1, 5, 6)}}
	both := []groupLook{{[]uint32{1, 1}, nil}, {[]uint32{1, 1}, waiting(1, 2)}, {[]uint32{1, 1}, waiting(1, 2)}, {[]uint32{1, 1}, waiting(1, 2)}}
	for name, c := range map[string]struct {
		program Program
		looks   []groupLook
		want    Verdict
	}{
		"all accept": {unknown, []groupLook{{[]uint32{1, 1}, nil}, {[]uint32{1, 1}, waiting(1, 2)}, {[]uint32{1, 1}, waiting(3, 4)},
			{[]uint32{1, 1}, waiting(5, 6)}, {[]uint32{1, 1}, waiting(7, 8)}}, Verdict{}},
		"one is stopped, one is idle":                     {unknown, one, Verdict{Working: 1, Listeners: 2}},
		"one is stopped, one is busy":                     {unknown, busy, Verdict{Working: 1, Listeners: 2}},
		"one process of the program is stopped":           {partly, one, Verdict{Working: 1, Listeners: 2}},
		"both are stopped":                                {unknown, both, Verdict{Reason: queueStands}},
		"the program is stopped, and it shows at one":     {stopped, one, Verdict{Reason: queueStands}},
		"the program runs, and takes its time":            {Program{Known: true}, both, Verdict{}},
		"one was stopped":                                 {unknown, append(busy[:5:5], groupLook{[]uint32{0, 1}, waiting(7)}), Verdict{}},
		"one was stopped, and nothing waits any more":     {unknown, append(one[:4:4], groupLook{[]uint32{0, 0}, nil}), Verdict{}},
		"both were stopped, and one accepts":              {unknown, append(both[:4:4], groupLook{[]uint32{0, 1}, waiting(2)}), Verdict{Working: 1, Listeners: 2}},
		"both are full":                                   {Program{Known: true}, []groupLook{{[]uint32{9, 9}, nil}, {[]uint32{9, 9}, waiting(1, 2)}}, Verdict{Reason: queueFull, Slow: true}},
		"one hangs for half a second, though it may run":  {Program{Known: true}, repeat(one[1], 12), Verdict{Slow: true, Working: 1, Listeners: 2}},
		"a listener alone, one of whose processes stands": {partly, repeat(groupLook{[]uint32{1}, waiting(1)}, 10), Verdict{}},
	} {
		var g Group
		if got := g.run(c.looks, c.program); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func repeat(l groupLook, times int) (all []groupLook) {
	for range times {
		all = append(all, l)
	}
	return all
}

// A simulation of listeners, of which some stop: these are never taken for sound for longer than a second's looks, those
// that accept within a look are never counted among them, and who has one that works is not out.
func TestAnInstanceIsOutOnlyWhereNoListenerWorks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stopped := rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, "stopped")
		works := 0
		for _, s := range stopped {
			if !s {
				works++
			}
		}
		queues := make([][]uint64, 3)
		next, got := uint64(1), Verdict{}
		var g Group
		for range 20 {
			each, names := map[uint64]Length{}, map[uint64]bool{}
			for i := range queues {
				if !stopped[i] {
					queues[i] = nil // all accepted since the last look
				}
				for range rapid.IntRange(0, 2).Draw(t, "arrive") {
					queues[i], next = append(queues[i], next), next+1
				}
				each[uint64(i)] = Length{Queue: uint32(len(queues[i])), Backlog: 128}
				for _, c := range queues[i] {
					names[c] = true
				}
			}
			if !g.Curious() {
				names = nil
			}
			got = g.Look(tick, each, names)
			if works > 0 && got.Reason != "" || got.Listeners > 0 && got.Working < works {
				t.Fatalf("%+v although %d of 3 accept", got, works)
			}
		}
		for i, q := range queues {
			if stopped[i] && len(q) > 8 && got == (Verdict{}) {
				t.Fatalf("listener %d has %d waiting, and nobody noticed", i, len(q))
			}
		}
	})
}

// One of three listeners is stopped, and what waits at it has not waited long enough to be late; the others accept, and
// always one waits at each. What waits at the one is not taken for theirs.
func TestWhatWaitsAtOneIsNotTakenForThatOfOthers(t *testing.T) {
	var g Group
	next := uint64(100)
	for i := range 4 {
		names := map[uint64]bool{next: true, next + 1: true}
		each := map[uint64]Length{0: {1, 128, Program{}}, 2: {1, 128, Program{}}, 1: {0, 128, Program{}}}
		if i > 0 {
			each[1] = Length{2, 128, Program{}}
			names[4], names[5] = true, true
		} else {
			names = nil
		}
		next += 2
		if got := g.Look(tick, each, names); got != (Verdict{}) {
			t.Fatalf("look %d: %+v", i, got)
		}
	}
}

// One of two workers is stopped for 200 ms, and the other got no processor meanwhile: as long as that one runs again, the
// instance is not taken away.
func TestAWorkerThatStopsBesideOneThatWaitsForAProcessorTakesNothingAway(t *testing.T) {
	var g Group
	for i := range 5 {
		p := Program{Known: true, Partly: true, Starved: tick}
		got := g.Look(tick, map[uint64]Length{1: {1, 8, p}, 2: {1, 8, p}}, waiting(1, 2))
		if got != (Verdict{}) {
			t.Fatalf("look %d: %+v", i, got)
		}
	}
}

// Whatever came before, an empty queue is a sound one.
func TestEmptyQueueForgivesAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		for range rapid.IntRange(0, 20).Draw(t, "looks") {
			q.Look(look(rapid.Uint32Range(0, 9).Draw(t, "queue"), 8, waiting(rapid.SliceOf(rapid.Uint64Range(1, 5)).Draw(t, "waiting")...)))
		}
		if got := q.Look(look(0, 8, nil)); got.Reason != "" || q.Curious() {
			t.Fatalf("%v", got)
		}
	})
}
