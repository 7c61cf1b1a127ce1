package serving

import (
	"maps"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// An Owner is the process that made a socket serve, as far as it is known.
type Owner struct {
	PID   uint32
	Comm  string
	Guest uint16 // whose namespace the socket is in; 0: the host's own
}

type entry struct {
	triple sid.Triple
	owner  Owner
}

// Sockets counts the serving sockets of each triple: the first registers it, the last one's end
// unregisters it. Several share a triple by SO_REUSEPORT and during a hot restart. Cookies make every
// call idempotent, so that a dump and the events around it may overlap.
type Sockets struct {
	cookies map[uint64]entry
	triples map[sid.Triple]map[uint64]bool
}

// NewSockets returns a count of nothing.
func NewSockets() *Sockets {
	return &Sockets{cookies: map[uint64]entry{}, triples: map[sid.Triple]map[uint64]bool{}}
}

// Register notes a serving socket and reports whether it is the first of its triple. A cookie that
// served another triple before (bound anew after shutdown) must be unregistered first.
func (s *Sockets) Register(cookie uint64, t sid.Triple, o Owner) (first bool) {
	if old, ok := s.cookies[cookie]; ok && old.triple == t {
		return false
	}
	s.cookies[cookie] = entry{t, o}
	if s.triples[t] == nil {
		s.triples[t] = map[uint64]bool{}
	}
	s.triples[t][cookie] = true
	return len(s.triples[t]) == 1
}

// Unregister forgets a socket and reports whether it was the last of its triple.
func (s *Sockets) Unregister(cookie uint64) (t sid.Triple, last bool) {
	e, ok := s.cookies[cookie]
	if !ok {
		return sid.Triple{}, false
	}
	delete(s.cookies, cookie)
	delete(s.triples[e.triple], cookie)
	if len(s.triples[e.triple]) > 0 {
		return e.triple, false
	}
	delete(s.triples, e.triple)
	return e.triple, true
}

// Replace makes the count of a guest's sockets, or the host's own, that of a dump and returns which triples came
// and which went.
func (s *Sockets) Replace(guest uint16, dump map[uint64]sid.Triple, owners map[uint64]Owner) (up, down []sid.Triple) {
	before := maps.Clone(s.triples)
	for cookie, e := range maps.Clone(s.cookies) {
		if t, ok := dump[cookie]; e.owner.Guest == guest && (!ok || t != e.triple) {
			s.Unregister(cookie)
		}
	}
	for cookie, t := range dump {
		s.Register(cookie, t, owners[cookie])
	}
	for t := range before {
		if s.triples[t] == nil {
			down = append(down, t)
		}
	}
	for t := range s.triples {
		if before[t] == nil {
			up = append(up, t)
		}
	}
	return up, down
}

// Triple is what the socket serves.
func (s *Sockets) Triple(cookie uint64) (sid.Triple, bool) {
	e, ok := s.cookies[cookie]
	return e.triple, ok
}

// Count is the number of the triple's sockets.
func (s *Sockets) Count(t sid.Triple) int { return len(s.triples[t]) }

// Cookies visits the triple's sockets.
func (s *Sockets) Cookies(t sid.Triple, f func(cookie uint64, o Owner)) {
	for cookie := range s.triples[t] {
		f(cookie, s.cookies[cookie].owner)
	}
}

// Guests are those that serve the triple, in order; 0 is the host itself.
func (s *Sockets) Guests(t sid.Triple) (all []uint16) {
	for cookie := range s.triples[t] {
		if g := s.cookies[cookie].owner.Guest; !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	slices.Sort(all)
	return all
}

// Triples visits all that is served.
func (s *Sockets) Triples(f func(sid.Triple)) {
	for t := range s.triples {
		f(t)
	}
}
