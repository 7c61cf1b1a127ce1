package stripe

import (
	"maps"
	"slices"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// State takes what the peer says of a stream. What is older than what was said before changes nothing: between two
// connections frames do not stay in order.
func (s *Sender) State(m *frame.State) error { return s.told(frame.TypeState, m) }

// Resume takes what a peer says of a stream whose worker began anew. Its credit counts because PeerRestarted was called:
// only so the order of RESUME and STATE does not matter.
func (s *Sender) Resume(m *frame.Resume) error {
	return s.told(frame.TypeResume, &frame.State{Session: m.Session, Acknowledged: m.Acknowledged, Arrived: m.Wanted, Credit: m.Credit})
}

func (s *Sender) told(by frame.Type, m *frame.State) error {
	o := s.streams[m.Session]
	if o == nil {
		return s.opened.missing(by, m.Session)
	}
	reached := m.Arrived
	if n := len(m.Ranges); n > 0 {
		reached = m.Ranges[n-1].To
	}
	switch {
	case reached > o.reached:
		return &Violation{NeverSent, by, m.Session, reached, o.reached}
	case m.Ended && !o.end.sent:
		return &Violation{Rule: NeverEnded, Frame: by, Session: m.Session}
	case m.Arrived < o.floor:
		return &Violation{AlreadyForgotten, by, m.Session, m.Arrived, o.floor}
	}
	o.cutAt(m.Arrived)
	for _, r := range m.Ranges {
		o.cutAt(r.From)
		o.cutAt(r.To)
		o.arrivedBetween(r)
	}
	o.arrivedTo(m.Arrived)
	o.credit = max(o.credit, m.Credit)
	acknowledged := m.Acknowledged
	if m.Ended {
		o.end.done, o.end.ready = true, false
		acknowledged = o.tail // an ABORT may have taken effect before all bytes came
	}
	if acknowledged > o.from {
		s.release(o, acknowledged)
	}
	o.split()
	s.touch(o)
	return nil
}

// PeerRestarted says that the peer's worker began anew, before any frame of that is given to the sender: all
// connections to the one before are gone, and what it said of ranges and credit is void.
func (s *Sender) PeerRestarted() {
	for _, session := range slices.Sorted(maps.Keys(s.streams)) {
		o := s.streams[session]
		o.floor, o.credit, o.seen, o.copied = o.from, 0, 0, 0
		for i := range o.chunks.len() {
			k := o.chunks.at(i)
			k.land()
			if k.arrived = false; i < o.next { // what is behind was sent, if at all, by a worker of ours before
				o.lose(i)
			}
		}
		o.end.on = nil
		s.ending(o)
		s.touch(o)
	}
}

// Restore says that what was pushed so far, and the end if there is one, may have been sent by a worker before this one:
// the driver calls it once it has pushed all chunks that it found.
func (s *Sender) Restore(session uint64) {
	if o := s.streams[session]; o != nil {
		o.reached, o.end.sent = o.tail, o.end.kind != 0
	}
}
