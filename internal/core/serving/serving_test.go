package serving

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

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

func TestQueueVerdicts(t *testing.T) {
	stuck, full := "accept queue does not move", "accept queue is full"
	tests := map[string]struct {
		looks []Look
		want  string
	}{
		"empty":                      {[]Look{{0, 8, nil}}, ""},
		"a moment":                   {[]Look{{3, 8, nil}, {3, 8, waiting(1, 2, 3)}, {0, 8, nil}}, ""},
		"busy but accepting":         {[]Look{{1, 8, nil}, {1, 8, waiting(1)}, {1, 8, waiting(2)}, {1, 8, waiting(3)}, {1, 8, waiting(4)}, {1, 8, waiting(5)}}, ""},
		"stopped":                    {[]Look{{1, 8, nil}, {2, 8, waiting(1, 2)}, {2, 8, waiting(1, 2)}, {3, 8, waiting(1, 2, 3)}}, stuck},
		"stopped, then drained":      {[]Look{{1, 8, nil}, {1, 8, waiting(1)}, {1, 8, waiting(1)}, {1, 8, waiting(1)}, {0, 8, nil}}, ""},
		"stopped, then accepts":      {[]Look{{2, 8, nil}, {2, 8, waiting(1, 2)}, {2, 8, waiting(1, 2)}, {2, 8, waiting(1, 2)}, {1, 8, waiting(2)}}, ""},
		"full":                       {[]Look{{9, 8, nil}, {9, 8, waiting(1, 2)}}, full},
		"full for a moment":          {[]Look{{9, 8, nil}, {2, 8, waiting(1, 2)}}, ""},
		"full but accepting":         {[]Look{{9, 8, nil}, {9, 8, waiting(1, 2)}, {9, 8, waiting(2, 3)}}, ""},
		"clients gave up and others": {[]Look{{1, 8, nil}, {1, 8, waiting(1)}, {1, 8, waiting(1)}, {0, 8, nil}, {1, 8, nil}}, ""},
	}
	for name, c := range tests {
		var q Queue
		var got string
		for _, l := range c.looks {
			got = q.Look(l)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A group is one look after another: the queue of each listener, and what waits in all of them.
type groupLook struct {
	queues  []uint32
	waiting map[uint64]bool
}

func TestOneStoppedListenerOfSeveralIsNoticed(t *testing.T) {
	tests := map[string]struct {
		looks []groupLook
		want  string
	}{
		"all accept": {[]groupLook{{[]uint32{1, 1}, nil}, {[]uint32{1, 1}, waiting(1, 2)}, {[]uint32{1, 1}, waiting(3, 4)},
			{[]uint32{1, 1}, waiting(5, 6)}, {[]uint32{1, 1}, waiting(7, 8)}}, ""},
		"one is stopped, others are idle": {[]groupLook{{[]uint32{1, 0}, nil}, {[]uint32{1, 0}, waiting(1)}, {[]uint32{1, 0}, waiting(1)},
			{[]uint32{1, 0}, waiting(1)}}, "accept queue does not move"},
		"one is stopped, one is busy": {[]groupLook{{[]uint32{1, 1}, nil}, {[]uint32{1, 2}, waiting(1, 2, 3)}, {[]uint32{1, 1}, waiting(1, 4)},
			{[]uint32{2, 0}, waiting(1, 5)}, {[]uint32{2, 1}, waiting(1, 5, 6)}}, "accept queue of 1 of 2 listeners does not move"},
		"one was stopped": {[]groupLook{{[]uint32{1, 1}, nil}, {[]uint32{1, 2}, waiting(1, 2, 3)}, {[]uint32{1, 1}, waiting(1, 4)},
			{[]uint32{2, 0}, waiting(1, 5)}, {[]uint32{2, 1}, waiting(1, 5, 6)}, {[]uint32{0, 1}, waiting(7)}}, ""},
	}
	for name, c := range tests {
		var g Group
		var got string
		for _, l := range c.looks {
			each := map[uint64]Length{}
			for i, q := range l.queues {
				each[uint64(i)] = Length{q, 8}
			}
			got = g.Look(each, l.waiting)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A simulation of listeners, of which one stops: it is never taken for sound for longer than a second's
// looks, and a group in which all accept within a look is never taken for stuck.
func TestGroupsAreJudgedByTheirWorstListener(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stopped := rapid.IntRange(-1, 2).Draw(t, "stopped")
		queues := make([][]uint64, 3)
		next, reason := uint64(1), ""
		var g Group
		for range 20 {
			each, names := map[uint64]Length{}, map[uint64]bool{}
			for i := range queues {
				if i != stopped {
					queues[i] = nil // all accepted since the last look
				}
				for range rapid.IntRange(0, 2).Draw(t, "arrive") {
					queues[i], next = append(queues[i], next), next+1
				}
				each[uint64(i)] = Length{uint32(len(queues[i])), 128}
				for _, c := range queues[i] {
					names[c] = true
				}
			}
			if !g.Curious() {
				names = nil
			}
			reason = g.Look(each, names)
			if stopped < 0 && reason != "" {
				t.Fatalf("%q although all accept", reason)
			}
		}
		if stopped >= 0 && len(queues[stopped]) > 8 && reason == "" {
			t.Fatalf("listener %d has %d waiting, and nobody noticed", stopped, len(queues[stopped]))
		}
	})
}

// Whatever came before, an empty queue is a sound one.
func TestEmptyQueueForgivesAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		for range rapid.IntRange(0, 20).Draw(t, "looks") {
			q.Look(Look{rapid.Uint32Range(0, 9).Draw(t, "queue"), 8, waiting(rapid.SliceOf(rapid.Uint64Range(1, 5)).Draw(t, "waiting")...)})
		}
		if got := q.Look(Look{0, 8, nil}); got != "" || q.Curious() {
			t.Fatalf("%q", got)
		}
	})
}
