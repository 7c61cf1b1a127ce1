package trunk

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/memory"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// Keep is what outlives this worker. How far each connection has come is not written down anywhere: the kernel knows what
// was read and written, and the memory of the trunk has the bytes that were read and that the other agent may want again.
type Keep interface {
	// Hold keeps a session's connection, before anything of it is read but what went out early: until then it ends with this worker.
	Hold(Kept, *net.TCPConn) error
	// Note replaces what was said of a session that is held, Release lets it go.
	Note(Kept)
	Release(session uint64)
	// Met says which incarnation the other agent's worker has.
	Met(incarnation uint64)
}

// Kept is what there is to know of a session beside what the kernel tells.
type Kept struct {
	Open      frame.Open
	Mine      bool // it was opened here: the end host is the client
	Host, Own frame.Options
	Since     time.Time
	Written   uint64 // the kernel's count of what goes to the end host, before the first byte: a SYN of ours is in it
	Whole     bool   // the end host's FIN was read
	// What follows programs from before do not know. Turned: the far agent opened it, for a client. Told is what the other agent
	// has said. Base is of a connection that was taken over; Written is none then.
	Turned bool  `json:",omitempty"`
	Told   *Told `json:",omitempty"`
	Base   *Base `json:",omitempty"`
}

// Found is a session that a worker before this one had.
type Found struct {
	Kept
	Conn *net.TCPConn
}

func (s *Session) kept(a Attached) Kept {
	k := Kept{Open: s.open, Mine: s.mine, Host: a.Host, Own: a.Own, Since: s.at, Written: s.counted, Whole: s.whole,
		Turned: s.move.turned, Told: s.move.told, Base: s.move.base}
	if k.Base != nil {
		k.Base, k.Written = &Base{k.Base.Read, k.Base.Wrote, s.counted}, mustNotGoOn
	}
	return k
}

// keep has a connection held that nothing was read from or written to. Where that fails the session is one that ends with
// this worker.
func (s *Session) keep(a Attached) {
	if s.t.Keep == nil {
		return
	}
	c, err := countsOf(a.Conn)
	if err == nil {
		s.counted = c.acked + c.unacked
		err = s.t.Keep.Hold(s.kept(a), a.Conn)
	}
	if s.held = err == nil; err != nil && s.t.Broken != nil {
		s.t.Broken(fmt.Errorf("%v ends with this worker: %w", s, err))
	}
}

// note says what has changed of a session.
func (s *Session) note() {
	if s.held {
		s.t.Keep.Note(s.kept(s.end))
	}
}

// release lets the end host's connection go, which is closed here.
func (s *Session) release() {
	if s.held {
		s.held = false
		s.t.all.Go(func() { s.t.Keep.Release(s.id) })
	}
}

// restore takes up the sessions that were found.
func (t *Trunk) restore() {
	t.mu.Lock() // those that go on do so before the last one is there
	defer t.mu.Unlock()
	if len(t.Found) == 0 {
		t.slots = newSlots(memory.NewSlots(t.Send))
		return
	}
	all := map[uint64]*Session{}
	for _, f := range t.Found {
		if s := t.revive(f); s != nil {
			all[s.id] = s
		}
	}
	slots, kept, broken := memory.Recover(t.Send, func(session uint64) (uint64, bool) {
		s := all[session]
		if s == nil {
			return 0, false
		}
		return s.read, true
	})
	t.slots = newSlots(slots)
	for _, id := range broken {
		all[id].giveUp(frame.Lost)
		delete(all, id)
	}
	for _, s := range all { // all of them before the bytes of any: each has a right to its part of the memory
		if !t.reopen(s, kept[s.id]) {
			for _, k := range kept[s.id] {
				t.slots.free(k.Slot)
			}
			s.giveUp(frame.Lost)
			delete(all, s.id)
		}
	}
	for _, s := range all {
		for _, k := range kept[s.id] {
			t.sender.Push(s.id, stripe.Chunk{Offset: k.Offset, Length: k.Length, Slot: k.Slot})
		}
		s.goOn()
	}
	t.receiver.Repeat()
	t.changed()
}

// revive makes a session of one that was found, if the kernel says that it goes on.
func (t *Trunk) revive(f Found) *Session {
	s := t.newSession(f.Open)
	s.mine, s.at, s.state, s.restored, s.held, s.counted = f.Mine, f.Since, streaming, true, t.Keep != nil, f.Written
	s.end = Attached{Conn: f.Conn, Host: f.Host, Own: f.Own}
	s.move.turned, s.move.told, s.move.base = f.Turned, f.Told, f.Base
	if f.Base != nil {
		s.counted = f.Base.Counted
	}
	p, err := progressOf(f)
	if err != nil {
		s.giveUp(frame.Lost)
		return nil
	}
	s.read, s.written, s.acknowledged, s.whole, s.finished = p.read, p.written, p.acknowledged, p.whole, p.finished
	return s
}

// reopen gives a session to the engines.
func (t *Trunk) reopen(s *Session, kept []memory.Kept) bool {
	from := s.read
	if len(kept) > 0 {
		from = kept[0].Offset
	}
	if t.sender.Open(s.id, from, 0) != nil {
		return false
	}
	if _, err := t.receiver.Open(s.id, s.written); err != nil {
		return false
	}
	t.receiver.Restore(s.id, s.acknowledged)
	if !s.mine {
		t.opened.take(s.id / 2)
	}
	return true
}

// goOn has a session go on that the engines have with all its bytes.
func (s *Session) goOn() {
	s.note()
	if s.whole {
		s.t.sender.End(s.id)
	}
	s.t.sender.Restore(s.id)
	if s.acknowledged < s.written {
		s.t.unacked[s] = struct{}{}
	}
	s.t.lonely = time.Now() // it waits for the other agent no longer than others do
	if s.whole {
		s.start(s.watch)
	} else {
		s.start(s.input)
	}
	s.start(s.output)
}

// progress is how far a connection to an end host has come, by the kernel's counts.
type progress struct {
	read, written, acknowledged uint64
	whole                       bool // FIN came, and all before it was read
	finished                    bool // FIN was sent
}

// States of TCP, as the kernel numbers them (net/tcp_states.h).
const (
	finWait1  = 4
	finWait2  = 5
	closed    = 7
	closeWait = 8
	lastACK   = 9
	closing   = 11
)

// counts are the kernel's of a connection. A FIN counts one in each of its directions, and so does a SYN of ours.
type counts struct {
	state                            uint8
	received, unread, acked, unacked uint64
	sent                             uint64 // bytes, each once; neither SYN nor FIN is one
	failed                           int    // SO_ERROR: why it was cut, if nobody has asked yet
}

// progressOf is an error where the connection has ended otherwise than by two whole streams. A socket that is closed has
// seen both FINs, or was cut. Both it has seen only where all that was sent was acknowledged, and one more than its bytes,
// which is our FIN; where no error is left to be told; and where nothing is left to be read either, only if it was noted
// that the end was: of a reset the kernel tells once.
func progressOf(f Found) (p progress, err error) {
	c, err := countsOf(f.Conn)
	if err != nil {
		return p, err
	}
	base := Base{Counted: f.Written}
	if f.Base != nil {
		base = *f.Base
	}
	over := c.state == closed
	fin := over || slices.Contains([]uint8{closeWait, lastACK, closing}, c.state)
	p.finished = over || slices.Contains([]uint8{finWait1, finWait2, closing, lastACK}, c.state)
	if over && !(c.acked == base.Counted+c.sent+1 && c.unacked == 0 && c.failed == 0 && (f.Whole || c.unread > 0)) ||
		c.received < c.unread+one(fin) || c.acked+c.unacked < base.Counted+one(p.finished) {
		return p, fmt.Errorf("the connection of %v with %v has ended", f.Open.Client, f.Open.Server)
	}
	p.whole = fin && c.unread == 0
	p.read = base.Read + c.received - c.unread - one(fin)
	p.written = base.Wrote + c.acked + c.unacked - base.Counted - one(p.finished)
	p.acknowledged = min(base.Wrote+c.acked-base.Counted, p.written)
	return p, nil
}

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// asks are how often the kernel is asked until its answers are of one moment. What comes in does so until the buffer is
// full, for nobody reads.
const asks = 1000

// countsOf asks the kernel. What is to be reset has ended.
func countsOf(conn *net.TCPConn) (c counts, err error) {
	err = onSocket(conn, func(fd int) (err error) {
		c, err = countsAt(fd)
		return err
	})
	return c, err
}

var errReset = errors.New("the connection is one that was to be reset")

func countsAt(fd int) (c counts, err error) {
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); err != nil || l.Onoff != 0 {
		return c, cmp.Or(err, errReset)
	}
	var before *unix.TCPInfo
	for range asks {
		i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return c, err
		}
		if before != nil && i.State == before.State && i.Bytes_received == before.Bytes_received && i.Bytes_acked == before.Bytes_acked {
			c.state, c.received, c.acked, c.sent = i.State, i.Bytes_received, i.Bytes_acked, i.Bytes_sent-i.Bytes_retrans
			if c.state == closed { // asked of no other: it would not be told again
				c.failed, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			}
			return c, err
		}
		before = i
		unread, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
		if err != nil {
			return c, err
		}
		unacked, err := unix.IoctlGetInt(fd, unix.TIOCOUTQ)
		if err != nil {
			return c, err
		}
		c.unread, c.unacked = uint64(unread), uint64(unacked)
	}
	return c, fmt.Errorf("the kernel's counts of a connection never stand still")
}
