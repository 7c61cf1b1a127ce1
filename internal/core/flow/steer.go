package flow

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
)

// maxEntries is how many socketIDs a flow is reached by.
const maxEntries = 16

// A Verb says what a Step does to a flow.
type Verb uint8

// The verbs, as internal/bpf/host describes them.
const (
	Accept Verb = 1 + iota
	Bind
	Retry
	Block
	Unbind
	Forget
	Retire // drops one former socketID
)

// A Step changes one flow, which is named as its socket sees it.
type Step struct {
	Verb          Verb
	Local, Remote netip.AddrPort
	Proto         sid.Proto
	From, To      netip.Addr // the local address, and the peer's where it is known
}

// Errors of Steer.
var (
	ErrGone    = errors.New("no such flow")
	ErrInvalid = errors.New("the flow is of another kind, or in another state")
)

// Steer does one step.
func (m *Machine) Steer(now time.Time, s Step) error {
	t := tuple{s.Local.Addr(), s.Remote.Addr(), s.Local.Port(), s.Remote.Port(), s.Proto}
	c := m.byTuple[t]
	if c == nil && (s.Verb == Forget || s.Verb == Retire) {
		return nil
	}
	if c == nil {
		return ErrGone
	}
	c.steered = true
	switch s.Verb {
	case Accept:
		return m.accept(now, c, s, c.state)
	case Bind:
		return m.bindTo(now, c, s)
	case Retry:
		return m.retry(now, c, s)
	case Block:
		m.block(c)
		return nil
	case Unbind:
		return m.unbind(now, c, s)
	case Forget:
		m.end(c)
		return nil
	}
	return m.retire(now, c, socket(s.From))
}

func socket(a netip.Addr) sid.SocketID { return sid.SocketID(sid.Low(a)) }

func (c *Conn) entry(id sid.SocketID) *entry {
	for _, e := range c.entries {
		if e.id == id {
			return e
		}
	}
	return nil
}

// accept adds a socketID, or sets the peer of one that is there.
func (m *Machine) accept(now time.Time, c *Conn, s Step, state State) error {
	if e := c.entry(socket(s.From)); e != nil {
		if s.To.IsValid() && e.state != Blocked {
			e.peer = s.To
		}
		return nil
	}
	if m.bySocket[socket(s.From)] != nil || !isSocket(s.From) {
		return ErrInvalid
	}
	if len(c.entries) == maxEntries {
		if c.entries[0].id == c.ID {
			return ErrInvalid
		}
		m.giveUp(now, c, 0)
	}
	peer := s.To
	if state == Blocked {
		peer = netip.Addr{}
	}
	m.enter(c, &entry{id: socket(s.From), peer: peer, state: state, slot: m.of(sid.LocatorOf(s.From)), heard: now})
	return nil
}

// giveUp ends the entry with the index.
func (m *Machine) giveUp(now time.Time, c *Conn, i int) {
	id := c.entries[i].id
	delete(m.bySocket, id)
	m.retired[id] = now
	c.entries = slices.Delete(c.entries, i, i+1)
}

// leaveAs makes the flow leave under a socketID that it has.
func (m *Machine) leaveAs(c *Conn, s Step) {
	c.ID = socket(s.From)
	if n := m.of(sid.LocatorOf(s.From)); n >= 0 {
		c.slot = n
	}
}

func (m *Machine) bindTo(now time.Time, c *Conn, s Step) error {
	if c.state == Blocked && m.of(sid.LocatorOf(s.From)) < 0 {
		return ErrInvalid
	}
	if c.entry(socket(s.From)) == nil {
		if err := m.accept(now, c, s, Bound); err != nil {
			return err
		}
	}
	newest := c.entries[len(c.entries)-1]
	newest.peer, c.peer = s.To, s.To
	if newest.state != HalfOpen {
		newest.state = Bound
	}
	m.leaveAs(c, s)
	if c.state != HalfOpen {
		c.become(Bound)
	}
	c.all(Connecting, Lost)
	return nil
}

func (m *Machine) retry(now time.Time, c *Conn, s Step) error {
	if c.Role != Client || c.state != Connecting {
		return ErrInvalid
	}
	if err := m.accept(now, c, s, Connecting); err != nil {
		return err
	}
	m.leaveAs(c, s)
	c.retried = true
	return nil
}

func (m *Machine) block(c *Conn) {
	c.become(Blocked)
	for _, e := range c.entries {
		e.state, e.peer = Blocked, netip.Addr{}
	}
}

func (m *Machine) unbind(now time.Time, c *Conn, s Step) error {
	if c.Role != Client || c.proto == sid.TCP || c.state == Blocked && m.of(sid.LocatorOf(s.From)) < 0 {
		return ErrInvalid
	}
	if e := m.bySocket[socket(s.From)]; e != nil || !isSocket(s.From) {
		return ErrInvalid
	}
	for len(c.entries) > 0 {
		m.giveUp(now, c, 0)
	}
	m.enter(c, &entry{id: socket(s.From), state: Connecting, slot: m.of(sid.LocatorOf(s.From)), heard: now})
	m.leaveAs(c, s)
	m.forgetAnswers(c)
	c.peer, c.retried = c.remote, true
	c.become(Connecting)
	return nil
}

func (m *Machine) retire(now time.Time, c *Conn, id sid.SocketID) error {
	i := slices.IndexFunc(c.entries, func(e *entry) bool { return e.id == id })
	switch {
	case i < 0:
		return nil
	case id == c.ID:
		return ErrInvalid
	}
	m.giveUp(now, c, i)
	return nil
}

// Answers returns, since the last call, the packets that answered what Steer began again.
func (m *Machine) Answers() [][]byte {
	a := m.answers
	m.answers = nil
	return a
}
