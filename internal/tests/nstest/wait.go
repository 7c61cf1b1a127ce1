package nstest

import (
	"testing"
	"time"
)

// Wait calls check until it returns nil. At the deadline the test fails with the last error and with
// look: where to look for the cause. It is for state that has no event to wait for.
func Wait(t testing.TB, look string, check func() error) {
	t.Helper()
	end := time.Now().Add(Deadline)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v still: %v\nlook at: %s", Deadline, err, look)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Receive takes the next value of a channel; at the deadline the test fails and says where to look.
func Receive[T any](t testing.TB, look string, c <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-c:
		if !ok {
			t.Fatalf("channel closed\nlook at: %s", look)
		}
		return v
	case <-time.After(Deadline):
		t.Fatalf("nothing in %v\nlook at: %s", Deadline, look)
	}
	panic("unreachable")
}
