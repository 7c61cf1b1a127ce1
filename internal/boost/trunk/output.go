package trunk

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/stripe"
)

// placesAtOnce is how many blocks are written with one call, 256 KiB.
const placesAtOnce = 16

// output writes what has arrived to the end host, until that stream ends.
func (s *Session) output() {
	places := make([]stripe.Place, 0, placesAtOnce)
	for {
		ready, goes := s.deliverable(places)
		switch {
		case !goes:
			return
		case len(ready.Places) > 0:
			if !s.deliver(ready.Places) {
				return
			}
		case ready.Abort != 0:
			s.resetByOrder()
			return
		case ready.End:
			s.finish()
			return
		default:
			select {
			case <-s.ready:
			case <-s.t.ctx.Done():
				return
			}
		}
	}
}

// deliverable is what can be done at the end host now; false: nothing any more.
func (s *Session) deliverable(places []stripe.Place) (stripe.Ready, bool) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if s.over || s.aborted || s.move.leaving || s.t.sessions[s.id] != s {
		return stripe.Ready{}, false
	}
	return s.t.receiver.Deliver(s.id, places), true
}

// deliver writes bytes, and says how far it came. What is not delivered stays where it is, so nothing needs the lock
// meanwhile.
func (s *Session) deliver(places []stripe.Place) bool {
	all := s.t.Receive.Bytes()
	parts := make(net.Buffers, 0, placesAtOnce)
	for _, p := range places {
		parts = append(parts, all[int(p.Block)*stripe.Block+int(p.At):][:p.Length])
	}
	s.looks.writing.Store(true)
	n, err := parts.WriteTo(s.end.Conn)
	s.looks.writing.Store(false)
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	defer s.t.changed()
	if s.t.sessions[s.id] != s {
		return false
	}
	s.written += uint64(n)
	s.t.receiver.Delivered(time.Now(), s.id, int(n))
	s.t.unacked[s] = struct{}{}
	if err != nil {
		if !s.over && !(s.move.leaving && errors.Is(err, os.ErrDeadlineExceeded)) { // who moves it has set one
			s.abort(causeOf(err))
		}
		return false
	}
	return true
}

// finish sends FIN: the stream to the end host is complete. What is left is that it acknowledges it.
func (s *Session) finish() {
	err := s.sendFIN()
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	defer s.t.changed()
	if s.t.sessions[s.id] != s || s.over {
		return
	}
	if err != nil {
		s.abort(causeOf(err))
		return
	}
	s.finished = true
	s.t.unacked[s] = struct{}{}
}

// sendFIN does it where a worker before this one has not.
func (s *Session) sendFIN() error {
	s.t.mu.Lock()
	was := s.finished
	s.finishing = true
	s.t.mu.Unlock()
	if was {
		return nil
	}
	if s.t.Finish != nil {
		s.t.Finish(s.end.Conn)
	}
	return s.end.Conn.CloseWrite()
}

// resetByOrder resets the end host: the other agent has aborted the session.
func (s *Session) resetByOrder() {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	defer s.t.changed()
	if s.t.sessions[s.id] != s {
		return
	}
	s.hangUp()
	s.arrived = true
	s.t.receiver.Acknowledged(time.Now(), s.id, s.written, true)
	s.settle()
}

// acknowledge asks the kernel how much the end hosts have acknowledged. It tells nobody by itself; what is asked for is
// the memory that the other agent keeps for it, so some milliseconds do not matter.
func (t *Trunk) acknowledge(now time.Time) {
	for s := range t.unacked {
		waiting, err := outstanding(s.end.Conn)
		if err != nil { // closed here: whoever did has said so
			delete(t.unacked, s)
			continue
		}
		fin := uint64(0)
		if s.finished {
			fin = 1
		}
		if left := uint64(waiting); left > fin {
			t.receiver.Acknowledged(now, s.id, s.written+fin-left, false)
			continue
		} else if left > 0 {
			t.receiver.Acknowledged(now, s.id, s.written, false)
			continue
		}
		t.receiver.Acknowledged(now, s.id, s.written, s.finished)
		delete(t.unacked, s)
		if s.finished {
			s.arrived = true
			s.settle()
		}
	}
}

// outstanding is how many bytes of a connection its peer has not acknowledged; a FIN counts one (tcp_ioctl, SIOCOUTQ).
func outstanding(c *net.TCPConn) (n int, err error) {
	err = onSocket(c, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCOUTQ)
		return err
	})
	return n, err
}

// isolated gives up sessions whose other agent cannot be reached for too long.
func (t *Trunk) isolated(now time.Time) {
	if t.lonely.IsZero() || now.Before(t.lonely.Add(t.Patience)) {
		return
	}
	for _, s := range t.sessions {
		s.lose()
	}
	t.lonely = time.Time{}
}
