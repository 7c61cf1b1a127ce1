package kick

import (
	"errors"
	"io"
	"testing"
	"time"
)

// Where the iterator cannot be had, sock_diag must say the same of what it knows.
func TestTheFallbackAgrees(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	exchange(t, c.mover, c.other, "hello")
	exchange(t, c.other, c.mover, "hello you")
	k, blind := openIn(t, w.mover), openIn(t, w.mover)
	blind.lost = errors.New("the test says so")
	if _, err := io.WriteString(c.other, "unread"); err != nil {
		t.Fatal(err)
	}
	await(t, k, c.mover, "holding six unread bytes", func(s Socket) bool { return s.Unread() == 6 && s.InFlight() == 0 })
	w.cut()
	if _, err := io.WriteString(c.mover, "stuck"); err != nil {
		t.Fatal(err)
	}
	s, b := one(t, k, c.mover), one(t, blind, c.mover)
	if s.InFlight() != b.InFlight() || s.Queued() != b.Queued() || s.Unread() != b.Unread() || s.Timer != b.Timer {
		t.Errorf("the iterator says %s, unread %d\nthe fallback says %s, unread %d", s.String(), s.Unread(), b.String(), b.Unread())
	}
	s.At, s.Sequenced, s.SndUna, s.SndNxt, s.Written, s.RcvNxt, s.Copied = b.At, b.Sequenced, b.SndUna, b.SndNxt, b.Written, b.RcvNxt, b.Copied
	s.SndWl1, s.MaxWnd, s.RcvWup, s.RcvWnd, s.Due, s.Cookie = b.SndWl1, b.MaxWnd, b.RcvWup, b.RcvWnd, b.Due, b.Cookie
	s.MSSClamp, s.TSEcho, s.TSOffset, s.TSRecent, s.TSMicros = 0, 0, 0, 0, false
	s.SRTT, s.RTTVar = s.SRTT.Truncate(time.Microsecond), b.RTTVar // tcp_info tells another measure of variation
	if s != b {
		t.Errorf("the iterator says\n%#v\nthe fallback says\n%#v", s, b)
	}
	for what, try := range map[string]func(Set) (Result, error){"kick": blind.Kick, "reset": blind.Reset} {
		if _, err := try(SetOf(tupleOf(c.mover))); !errors.Is(err, ErrBlind) {
			t.Errorf("%s without sequence numbers: %v, want ErrBlind", what, err)
		}
	}
}
