package tuntap_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/tuntap"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A noted TAP notes the arrival of frames.
type noted struct {
	*tuntap.Arrivals
	fd   int
	send *nstest.Frames
}

func newNoted(t *testing.T, queue uint32) *noted {
	t.Helper()
	ns, n := nstest.New(t, "noted"), &noted{}
	ns.Sysctl(t, "net/ipv6/conf/default/disable_ipv6", "1") // nobody else sends
	var err error
	ns.Do(func() {
		if n.fd, err = tuntap.Open("tap", tuntap.TAP|tuntap.Header, unix.TUN_F_CSUM); err != nil {
			return
		}
		var req *unix.Ifreq
		if req, err = unix.NewIfreq("tap"); err != nil {
			return
		}
		var s int
		if s, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(s)
		req.SetUint32(queue)
		err = unix.IoctlIfreq(s, unix.SIOCSIFTXQLEN, req)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(n.fd) })
	if n.Arrivals, err = tuntap.NewArrivals(n.fd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	ns.Up(t, "tap")
	n.send = ns.Frames(t, "tap")
	return n
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}

// come sends frames and returns before and after which moment each came.
func (n *noted) come(t *testing.T, frames int) (times []int64) {
	t.Helper()
	times = append(times, monotonic(t))
	for range frames {
		n.send.Send(t, make([]byte, 60))
		times = append(times, monotonic(t))
	}
	return times
}

// read reads a frame; false without one.
func (n *noted) read(t *testing.T) bool {
	t.Helper()
	_, err := unix.Read(n.fd, make([]byte, 100))
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	return err == nil
}

func TestTheArrivalOfEachFrameIsKnown(t *testing.T) {
	n := newNoted(t, 100)
	for round := range 3 {
		times := n.come(t, 10)
		for i := range 10 {
			if !n.read(t) {
				t.Fatalf("round %d: %d frames of 10", round, i)
			}
			if at := n.Next(); at < times[i] || at > times[i+1] {
				t.Errorf("round %d, frame %d: came at %d, was sent from %d to %d", round, i, at, times[i], times[i+1])
			}
		}
		n.Empty(monotonic(t))
	}
}

func TestFramesThatWereLostTakeNoPlace(t *testing.T) {
	n := newNoted(t, 4)
	n.come(t, 10)
	got := 0
	for ; n.read(t); got++ {
		n.Next()
	}
	if got == 10 {
		t.Fatal("all of 10 frames found room in a queue of 4")
	}
	const later = 1e9 // by then nobody is still sending
	n.Empty(monotonic(t) + later)
	times := n.come(t, 1)
	if !n.read(t) {
		t.Fatal("no frame")
	}
	if at := n.Next(); at < times[0] || at > times[1] {
		t.Errorf("came at %d, was sent from %d to %d", at, times[0], times[1])
	}
}
