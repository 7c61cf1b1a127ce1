package trunk

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// input reads what the end host sends, until it ends.
func (s *Session) input() {
	for {
		err := s.readable()
		if err == nil {
			err = s.readSome()
		}
		if err == nil {
			continue
		}
		s.t.mu.Lock()
		s.inputEnds(err)
		s.t.changed()
		s.t.mu.Unlock()
		if errors.Is(err, io.EOF) {
			s.watch()
		}
		return
	}
}

// readable waits until the socket has something to say: a session whose end host is silent holds no slot.
func (s *Session) readable() error {
	raw, err := s.end.Conn.SyscallConn()
	if err != nil {
		return err
	}
	var one [1]byte
	var said error                         // the kernel tells a reset once: the read that follows would get the end of a whole stream
	err = raw.Read(func(fd uintptr) bool { // true: there are bytes, a FIN, or an error
		_, _, said = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		silent := errors.Is(said, unix.EAGAIN)
		s.looks.idle.Store(silent)
		return !silent && !errors.Is(said, unix.EINTR)
	})
	if err != nil {
		return err
	}
	return said
}

// errMore says that a read was interrupted by nothing in particular.
var errMore = errors.New("nothing to read yet")

// readSome waits for room, reads once, and hands on what it got.
func (s *Session) readSome() error {
	slot, room, err := s.makeRoom()
	if err != nil {
		return err
	}
	n, err := s.readNow(room)
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if n > 0 && s.t.sessions[s.id] == s && !s.sent && !s.aborted {
		s.t.sender.Push(s.id, stripe.Chunk{Offset: s.read, Length: uint32(n), Slot: slot, At: uint32(s.slot.used)})
		s.read += uint64(n)
		s.slot.used += n
		s.t.slots.keep(slot)
	}
	s.t.slots.drop(slot)
	s.t.changed()
	if errors.Is(err, errMore) {
		return nil
	}
	return err
}

// makeRoom waits until the session may send, and holds the slot that the bytes go to.
func (s *Session) makeRoom() (slot uint32, room []byte, err error) {
	for {
		s.t.mu.Lock()
		if s.over || s.sent || s.aborted || s.move.leaving || s.t.sessions[s.id] != s {
			s.t.mu.Unlock()
			return 0, nil, os.ErrClosed
		}
		want := min(s.t.sender.Room(s.id), stripe.MaxChunk)
		if want > 0 && s.t.slots.filling(s, want) {
			slot, room = s.slot.number, s.slot.rest()
			s.t.slots.hold(slot)
			s.t.mu.Unlock()
			return slot, room[:min(len(room), want)], nil
		}
		s.t.starved[s] = struct{}{}
		s.t.mu.Unlock()
		select {
		case <-s.room:
		case <-s.t.ctx.Done():
			return 0, nil, os.ErrClosed
		}
	}
}

// readNow reads what is there. The socket does not block; an end host that has sent FIN is io.EOF.
func (s *Session) readNow(room []byte) (n int, err error) {
	raw, err := s.end.Conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	if fail := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), room) }); fail != nil {
		return 0, fail
	}
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return 0, errMore
	case err != nil:
		return 0, err
	case n == 0:
		return 0, ended(s.end.Conn, s.read-s.move.began())
	}
	return n, nil
}

// ended is io.EOF where the end host has sent FIN behind so many bytes. The kernel tells of a reset once; where the writer
// was the one that heard of it, the reader sees an end like that of a FIN (Linux, tcp_reset and tcp_recvmsg: the error is
// taken, RCV_SHUTDOWN stays). A FIN counts one among the bytes received.
func ended(c *net.TCPConn, read uint64) error {
	i, err := info(c)
	switch {
	case err != nil:
		return err
	case i.State == closed && i.Bytes_received != read+1:
		return unix.ECONNRESET
	}
	return io.EOF
}

// watch waits, once the end host has sent FIN, until its connection ends: nobody reads of it any more, and what is written
// to it may have been written already. Both FINs may be under way, and a reset still comes.
func (s *Session) watch() {
	raw, err := s.end.Conn.SyscallConn()
	if err != nil {
		return
	}
	// The kernel wakes readers when a connection closes by whatever way (tcp_done, sk_state_change).
	if err := raw.Read(func(fd uintptr) bool {
		i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		return err != nil || i.State == closed
	}); err != nil {
		return // closed here
	}
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if s.t.sessions[s.id] != s || s.over {
		return
	}
	// Where a FIN is only about to leave, and fails because of this, finish says so.
	if left, err := outstanding(s.end.Conn); err != nil || left > 0 || !s.finishing && !s.finished {
		s.abort(causeOf(failure(s.end.Conn)))
		s.t.changed()
	}
}

// failure is why a connection has ended, if nobody has heard of it before.
func failure(c *net.TCPConn) error {
	return onSocket(c, func(fd int) error {
		number, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && number != 0 {
			err = unix.Errno(number)
		}
		return err
	})
}

// inputEnds says how the stream from the end host has ended: by FIN, or by a reset, or because nobody answers.
func (s *Session) inputEnds(err error) {
	if s.t.sessions[s.id] != s {
		return
	}
	s.t.slots.leave(s)
	switch {
	case s.over || s.aborted || s.sent || errors.Is(err, os.ErrClosed):
	case s.move.leaving && errors.Is(err, os.ErrDeadlineExceeded): // who moves it has set one
	case errors.Is(err, io.EOF):
		s.whole = true
		s.note()
		s.t.sender.End(s.id)
		s.settle()
	default:
		s.abort(causeOf(err))
	}
}

// causeOf is what an error of an end host's socket means.
func causeOf(err error) frame.Cause {
	if errors.Is(err, unix.ETIMEDOUT) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) {
		return frame.Dead
	}
	return frame.Reset
}
