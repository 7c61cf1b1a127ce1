package frr

import (
	"errors"
	"fmt"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A zebra that comes back says all again, and does not say what went away meanwhile.
func TestRoutesThatAreNotReplayedAreGone(t *testing.T) {
	ns := nstest.New(t, "r")
	c, lost := make(told, 1000), make(chan error, 10)
	f, err := Listen(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), c.tell, func(err error) { lost <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	recorded := frames(t, "testdata/static.hex")
	send := func(frames [][]byte) {
		conn, err := ns.Dial("tcp", FeedAddr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		for _, frame := range frames {
			conn.Write(frame)
		}
		if len(frames) == 20 { // the first connection ends, the second stays
			conn.Close()
		}
	}
	send(recorded[:20])
	c.waitFor(t, "fd00:c::/48", Blackhole)
	c.waitFor(t, "fd00:d::/48", Unreachable)
	send(recorded[:17])
	c.waitFor(t, "fd00:c::/48", Gone)
	c.waitFor(t, "fd00:d::/48", Gone)
	if err := nstest.Receive(t, "Feed.serve", lost); !errors.Is(err, errGone) {
		t.Errorf("%v, want %v, of the first connection", err, errGone)
	}
	f.Close()
	select {
	case err := <-lost:
		t.Errorf("closing the feed is told as %v", err)
	default:
	}
}

func TestAConnectionThatIsNoFeedIsToldOf(t *testing.T) {
	ns := nstest.New(t, "r")
	lost := make(chan error, 1)
	f, err := Listen(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), func([]Change) {}, func(err error) { lost <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	conn, err := ns.Dial("tcp", FeedAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write([]byte("GET / HTTP/1.1\r\n"))
	if err := nstest.Receive(t, "Feed.serve", lost); err == nil {
		t.Error("no error")
	}
}

// Who waits for zebra to come back hears of it even if no route is another one.
func TestAReplayThatChangesNothingIsTold(t *testing.T) {
	ns := nstest.New(t, "r")
	calls := make(chan int, 1000)
	f, err := Listen(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), func(c []Change) { calls <- len(c) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 2 {
		conn, err := ns.Dial("tcp", FeedAddr)
		if err != nil {
			t.Fatal(err)
		}
		for _, frame := range frames(t, "testdata/static.hex")[:17] {
			conn.Write(frame)
		}
		for n := -1; n != 0; {
			n = nstest.Receive(t, "Feed.tell", calls)
		}
		conn.Close()
	}
}
