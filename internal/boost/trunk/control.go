package trunk

import (
	"slices"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
)

type connectionID = stripe.Conn

// A control is a frame about a session that waits to be said: what it says is looked up when a connection takes it.
type control struct {
	typ     frame.Type // OPEN, OPENED, REFUSED, RETIRE, PING
	session uint64     // of PING: what it answers
}

// say has a frame said, on whatever connection.
func (t *Trunk) say(c control) { t.pending = append(t.pending, c) }

// nextControl appends the next frame that waits, and notes on which connection it goes. Frames that mean nothing any more
// are skipped.
func (t *Trunk) nextControl(on *connection, to []byte) []byte {
	for i := 0; i < len(t.pending) && len(to) == 0; {
		c := t.pending[i]
		if t.leaves(c, on) {
			i++
			continue
		}
		t.pending = slices.Delete(t.pending, i, i+1)
		to = t.encode(c, on.id, to)
	}
	return to
}

// leaves reports whether a connection that carries no chunks leaves an OPEN to one that does, for what is early goes where
// its OPEN went.
func (t *Trunk) leaves(c control, on *connection) bool {
	if !on.rests || c.typ != frame.TypeOpen {
		return false
	}
	if s := t.sessions[c.session]; s == nil || s.early.conn == nil || s.state != asking {
		return false
	}
	for _, other := range t.conns {
		if other.met && !other.rests && !other.late {
			return true
		}
	}
	return false
}

func (t *Trunk) encode(c control, on connectionID, to []byte) []byte {
	s := t.sessions[c.session]
	if s != nil {
		s.on[c.typ] = on
	}
	switch {
	case c.typ == frame.TypeRefused && t.refused.of(c.session) == 0: // so many were refused since that the reason is forgotten
		return frame.Retire(c.session).Append(to)
	case c.typ == frame.TypeRefused:
		return frame.Refused{Session: c.session, Reason: t.refused.of(c.session)}.Append(to)
	case c.typ == frame.TypeRetire:
		return frame.Retire(c.session).Append(to)
	case s == nil:
		return to
	case c.typ == frame.TypeOpen:
		if s.state == asking {
			t.sender.Follow(s.id, on) // changes nothing where nothing is early
		}
		return s.open.Append(to)
	case c.typ == frame.TypeTakeover:
		return s.move.ask.Append(to)
	case c.typ == frame.TypeTaken:
		return frame.Taken{Session: s.id, Wanted: s.move.taken.Wanted, Credit: t.receiver.Credit(s.id)}.Append(to)
	case c.typ == frame.TypeOpened:
		m := frame.Opened{Session: s.id, Credit: t.receiver.Credit(s.id), Host: s.end.Host, Own: s.end.Own}
		return m.Append(to)
	}
	return to
}

// sayAgain has frames said again that may have been lost with a connection.
func (t *Trunk) sayAgain(dead connectionID) {
	for _, s := range t.sessions {
		for typ, on := range s.on {
			if on == dead {
				delete(s.on, typ)
				t.say(control{typ: typ, session: s.id})
			}
		}
	}
	for _, session := range t.refused.order { // on which connection is not noted: they are few
		t.say(control{typ: frame.TypeRefused, session: session})
	}
}
