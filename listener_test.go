package scaffold

import (
	"context"
	"errors"
	"net"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"
)

func listening(t *testing.T, f *fake) (*Listener, chan Notice) {
	t.Helper()
	told := make(chan Notice, 10)
	lc := ListenConfig{Host: f.host, CanResume: true, Notify: func(n Notice) { told <- n }}
	l, err := lc.Listen(t.Context(), "tcp", "web:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, told
}

func want(t *testing.T, told chan Notice, notices ...Notice) {
	t.Helper()
	for _, n := range notices {
		if got := <-told; got != n {
			t.Fatalf("told %q, want %q", got, n)
		}
	}
}

func TestAServingProgramIsToldOfDrains(t *testing.T) {
	f := newFake(t)
	l, told := listening(t, f)
	want(t, told, Serving)
	port := uint32(l.Addr().(*net.TCPAddr).Port)
	if r := f.serves[0]; r.Service != "::1" || r.Proto != "tcp" || r.Port != port || !r.CanResume {
		t.Errorf("the daemon was told %v", r)
	}
	f.notes <- "draining"
	f.notes <- "undrained"
	want(t, told, Draining, Undrained)
}

func TestAListenerFindsARestartedDaemonAgain(t *testing.T) {
	f := newFake(t)
	_, told := listening(t, f)
	want(t, told, Serving)
	for range 3 {
		f.stop()
		want(t, told, Lost)
		f.start(t)
		want(t, told, Serving)
	}
	f.locked(func() {
		if r := f.serves[len(f.serves)-1]; len(f.serves) != 4 || !r.CanResume {
			t.Errorf("the daemon was told %v", f.serves)
		}
	})
}

func TestANoticeMayCloseTheListener(t *testing.T) {
	f := newFake(t)
	var l *Listener
	ready := make(chan bool)
	lc := ListenConfig{Host: f.host, Notify: func(n Notice) {
		if n == Draining {
			<-ready
			l.Close()
		}
	}}
	var err error
	if l, err = lc.Listen(t.Context(), "tcp", "web:0"); err != nil {
		t.Fatal(err)
	}
	close(ready)
	f.notes <- "draining"
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v, want net.ErrClosed", err)
	}
}

func TestWithNothingToSayNoCallIsHeld(t *testing.T) {
	f := newFake(t)
	f.old = true
	var lc ListenConfig
	lc.Host = f.host
	c, err := lc.ListenPacket(t.Context(), "udp", "web:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil || len(f.serves) != 0 {
		t.Errorf("Close: %v; the daemon was told %v", err, f.serves)
	}
}

func TestACancelledListenLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lc := ListenConfig{Host: f.host, CanResume: true}
	if _, err := lc.ListenPacket(ctx, "udp", "web:0"); !errors.Is(err, context.Canceled) {
		t.Errorf("Listen with a cancelled context: %v", err)
	}
}
