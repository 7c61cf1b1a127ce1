package trunk

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// Ready reports whether the other agent can be asked for a session now: it is there, and here is memory for one more.
func (t *Trunk) Ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed && t.reached() > 0 && t.sender.HasRoom() && t.receiver.HasRoom()
}

// OpenWith is Open and Attach for a client that was accepted before anybody knows whether the server will. What it says goes
// out behind OPEN at once, up to stripe.Early bytes. The kernel keeps that until the other agent has answered: whoever goes on
// with the connection reads it, this session or one with another agent; and where this process dies before, the kernel
// resets the client, of whom no next worker has heard.
//
// Without an error the session has the connection. A *Refused says that the other agent has done nothing, and will not: the
// connection is as it was, and somebody else may be asked. After any other error the server may have heard the client, so
// nobody else may; the connection is the caller's to be reset.
func (t *Trunk) OpenWith(ctx context.Context, m frame.Open, a Attached) error {
	s, err := t.ask(m, a.Conn)
	if errors.Is(err, ErrClosed) { // nobody was asked
		return &Refused{frame.NoRoom}
	}
	if err != nil {
		return err
	}
	err = s.wait(ctx)
	s.hush()
	if err == nil {
		err = discard(a.Conn, int(s.read))
	}
	if err != nil {
		s.Abandon()
		return err
	}
	s.Attach(a)
	return nil
}

// earlier is a client that was accepted before the other agent has answered.
type earlier struct {
	conn   *net.TCPConn  // nil: there is none
	hushed chan struct{} // nobody peeks any more
}

// exposed reports whether the server may hear what the client has said, though nobody has answered: no other agent may say
// it to the server again.
func (s *Session) exposed() bool { return s.early.conn != nil && s.state == asking && s.read > 0 }

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// hush ends foresee, and waits for it.
func (s *Session) hush() {
	_ = s.early.conn.SetReadDeadline(longAgo)
	<-s.early.hushed
	_ = s.early.conn.SetReadDeadline(time.Time{})
}

// foresee sends what the client says before the other agent has answered, until hush; then what follows is read as ever. It
// has the session end where the client does.
func (s *Session) foresee() {
	defer close(s.early.hushed)
	for more := true; ; {
		err := s.hears(more)
		if err == nil {
			more, err = s.peek()
		}
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				s.reply(err)
			}
			return
		}
	}
}

// hears waits until the client has said more than was sent, if more can be, or is gone.
func (s *Session) hears(more bool) error {
	raw, err := s.early.conn.SyscallConn()
	if err != nil {
		return err
	}
	var said error
	err = raw.Read(func(fd uintptr) bool {
		unread, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		if said = err; err != nil || more && uint64(unread) > s.read {
			return true
		}
		i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if said = err; err == nil && i.State == closed {
			said = unix.ECONNRESET // no FIN of ours has gone
		}
		return said != nil
	})
	if err != nil {
		return err
	}
	return said
}

// peek sends what is new of what the client has said; false: no more of it can be early.
func (s *Session) peek() (more bool, err error) {
	slot, room := s.earlyRoom()
	if room == nil {
		return false, nil
	}
	n := 0
	// The same bytes come to the same places again, however often: that does not disturb who is sending them.
	err = onSocket(s.early.conn, func(fd int) (err error) {
		n, _, err = unix.Recvfrom(fd, room, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err
	})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		n, err = 0, nil
	}
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if added := n - s.slot.used; added > 0 && s.t.sessions[s.id] == s && !s.sent && !s.aborted {
		s.t.sender.Push(s.id, stripe.Chunk{Offset: s.read, Length: uint32(added), Slot: slot, At: uint32(s.slot.used)})
		s.read += uint64(added)
		s.slot.used += added
		s.t.slots.keep(slot)
	}
	s.t.slots.drop(slot)
	s.t.changed()
	return true, err
}

// earlyRoom holds the slot that all early bytes go to, one, from its beginning on; nil: there is none, or no room is left in it.
func (s *Session) earlyRoom() (slot uint32, room []byte) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	switch {
	case s.t.sessions[s.id] != s || s.over || s.sent || s.state != asking || s.t.sender.Room(s.id) == 0:
		return 0, nil
	case s.read > 0 && (s.slot.room == nil || s.slot.used == len(s.slot.room)):
		return 0, nil
	case !s.t.slots.filling(s, stripe.Early): // what is not early is late, and no worse
		return 0, nil
	}
	s.t.slots.hold(s.slot.number)
	return s.slot.number, s.slot.room[:min(len(s.slot.room), stripe.Early)]
}

// nothing is where discard reads to: the kernel writes nothing there (tcp_recvmsg, MSG_TRUNC).
var nothing [stripe.Early]byte

// discard takes bytes out of a connection that were peeked.
func discard(c *net.TCPConn, bytes int) error {
	for bytes > 0 {
		n := 0
		err := onSocket(c, func(fd int) (err error) {
			n, _, err = unix.Recvfrom(fd, nothing[:bytes], unix.MSG_TRUNC|unix.MSG_DONTWAIT)
			return err
		})
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0: // what was peeked is there, unless the client is gone
			return unix.ECONNRESET
		}
		bytes -= n
	}
	return nil
}
