package trunk

import (
	"fmt"
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
func (t *Trunk) say(c control) { t.unsaid.add(c) }

// nextControl appends the next frame that waits, and notes on which connection it goes. Frames that mean nothing any more
// are skipped.
func (t *Trunk) nextControl(on *connection, to []byte) []byte {
	for len(to) == 0 {
		c, there := t.unsaid.take(func(c control) bool { return !t.leaves(c, on) })
		if !there {
			return to
		}
		to = t.encode(c, on.id, to)
	}
	return to
}

// unsaid are the frames that wait to be said, in their order. Each waits once, however often there is a reason to say it: what it
// says is looked up when it leaves.
type unsaid struct {
	list  []control
	waits map[control]struct{} // those of list
}

func (u *unsaid) add(c control) {
	if _, waits := u.waits[c]; waits {
		return
	}
	if u.waits == nil {
		u.waits = map[control]struct{}{}
	}
	u.waits[c] = struct{}{}
	u.list = append(u.list, c)
}

// take takes the first one that may go.
func (u *unsaid) take(may func(control) bool) (c control, there bool) {
	i := slices.IndexFunc(u.list, may)
	if i < 0 {
		return c, false
	}
	c = u.list[i]
	if i == 0 { // as nearly always: the rest is not moved
		u.list = u.list[1:]
	} else {
		u.list = slices.Delete(u.list, i, i+1)
	}
	delete(u.waits, c)
	return c, true
}

// mostGone is how many answers about sessions that are not there may wait, 65,536: each came of frames of the other agent's, which
// may name as many sessions as there are numbers, and need not read what it is told. One that reads is told 1,024 refusals at a
// time after a connection has died (refusalsKept), and else what it has just asked.
const mostGone = 1 << 16

// ofEach is how many frames may wait about one session: OPEN, OPENED, REFUSED, RETIRE, TAKEOVER and TAKEN.
const ofEach = 6

// unheard reports whether more waits than the sessions that there are and mostGone others account for.
func (t *Trunk) unheard() bool { return len(t.unsaid.list) > mostGone+ofEach*len(t.sessions) }

// errUnheard ends a connection of an agent that asks, and does not read what it is told.
var errUnheard = fmt.Errorf("the other agent does not read what it is told: more than %d answers about sessions that are not there wait for it", mostGone)

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
