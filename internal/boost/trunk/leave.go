package trunk

import (
	"context"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// An agent that was cut off from the other one gives its sessions up, and resets their end hosts. Where another agent may have
// taken them over meanwhile (TAKEOVER) such a reset would end what goes on there. That agent has a connection only if it has
// heard the end host, which the network sends to one place: so who hears the end host may reset it, and who does not lets go
// of his socket without a word.

const (
	// hears is for how long an answer of the end host is waited for: one of keepalive goes out once the connection has been idle
	// for a second, the least that the kernel takes.
	hears     = 1500 * time.Millisecond
	hearsNow  = 20 * time.Millisecond  // how often it is looked whether it has come
	asksAfter = 600 * time.Millisecond // Linux answers such segments twice a second
)

// Lose gives up a session of which the other agent is lost, and with it bytes of its end host: what that has sent nobody can
// say, and both end hosts are reset.
func (s *Session) Lose() {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.abort(frame.Lost)
	s.t.changed()
}

// lose gives up a session that the other agent no longer has, or that has no other agent.
func (s *Session) lose() {
	if s.t.sessions[s.id] != s {
		return
	}
	s.cause = frame.Lost
	s.part()
	s.forget()
}

// part gives up the connection to an end host of a session that the other agent no longer has.
func (s *Session) part() {
	c := s.end.Conn
	if c == nil || s.over {
		s.hangUp()
		return
	}
	s.over = true
	s.reply(ErrClosed)
	wake(s.room)
	wake(s.ready)
	_ = c.SetDeadline(time.Unix(1, 0)) // nobody reads or writes any more
	s.t.all.Go(func() {
		if !answers(s.t.ctx, c) {
			freeze(c)
		}
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		s.resetEnd()
	})
}

// answers asks the end host whether it still speaks to this agent.
func answers(ctx context.Context, c *net.TCPConn) bool {
	before, err := info(c)
	if err != nil {
		return false
	}
	tick := time.NewTicker(hearsNow)
	defer tick.Stop()
	asked := time.Time{}
	for end := time.Now().Add(hears); time.Now().Before(end); {
		if time.Since(asked) > asksAfter {
			asked = time.Now()
			question(c)
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if i, err := info(c); err != nil || i.Segs_in != before.Segs_in {
			return err == nil
		}
	}
	return false
}

// question has the kernel send a segment that any TCP answers: a window probe at once, where the connection is established
// (tcp_send_window_probe; it leaves the state of repair by that), or one of keepalive.
func question(c *net.TCPConn) {
	_ = onSocket(c, func(fd int) error {
		if freezes(fd) == nil {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, unix.TCP_REPAIR_OFF)
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1)
	})
}

// freeze has the kernel end a connection without a word, whoever closes it last. Where it may not, that is a reset.
func freeze(c *net.TCPConn) { _ = onSocket(c, freezes) }

func freezes(fd int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, unix.TCP_REPAIR_ON)
}
