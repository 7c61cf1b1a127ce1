package trunk

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/tune"
)

// What the kernel counts of buffers reaches the verdict about the path, and the trunk's status while it carries sessions.
func TestWhatBuffersHoldUpIsSaidOfThePath(t *testing.T) {
	r := newRig(t, 1)
	client, server := r.dial()
	defer client.Close()
	defer server.Close()
	r.near.mu.Lock()
	s, c := &only(r.near).shaping, r.near.conns[1]
	s.tuner, s.changed = tune.NewTuner(tune.Settings{}), false
	now := time.Now()
	s.at = now
	i := unix.TCPInfo{}
	c.was = countedBy(&i)
	c.rtt, c.shortest = time.Millisecond, time.Millisecond
	for range 5 {
		now = now.Add(tune.Interval(c.shortest))
		i.Bytes_acked, i.Bytes_sent, i.Busy_time, i.Sndbuf_limited = i.Bytes_acked+1e6, i.Bytes_sent+1e6, i.Busy_time+200_000, i.Sndbuf_limited+150_000
		c.now = countedBy(&i)
		s.looks, s.bound = 10, 10
		only(r.near).shape(now)
	}
	r.near.mu.Unlock()
	if got := r.near.Status().Path; got.Cause != tune.SendBuffer || got.Held < 0.7 || got.Held > 0.8 {
		t.Errorf("%+v", got)
	}
	r.near.mu.Lock()
	sessions := r.near.sessions
	r.near.sessions = nil
	r.near.mu.Unlock()
	if got := r.near.Status().Path; got != (tune.Verdict{}) {
		t.Errorf("without sessions: %+v", got)
	}
	r.near.mu.Lock()
	r.near.sessions = sessions
	r.near.mu.Unlock()
}
