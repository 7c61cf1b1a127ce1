package kick

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A look at one socket and a pass over all tell the same of a connection that stands still.
func TestALookTellsWhatAPassTells(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	exchange(t, c.mover, c.other, "hello")
	exchange(t, c.other, c.mover, "hello you")
	k := openIn(t, w.mover)
	var passed Socket
	err := k.pass(SetOf(tupleOf(c.mover)), func(s *Socket) error { passed = *s; return nil })
	if err != nil {
		t.Fatal(err)
	}
	looked, sure, err := k.Look(tupleOf(c.mover))
	if err != nil || !sure || looked == nil {
		t.Fatalf("look: %v %v %v", looked, sure, err)
	}
	if passed.SndUna == 0 || passed.Tuple != tupleOf(c.mover) {
		t.Fatalf("the pass told %+v", passed)
	}
	passed.At, passed.Due = looked.At, looked.Due // the clock goes on
	if passed != *looked {
		t.Errorf("the pass told\n%+v\nthe look\n%+v", passed, *looked)
	}
}

func TestALookFindsNoListenerAndNoOtherConnection(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	k := openIn(t, w.other)
	there := tupleOf(c.other)
	other := Tuple{Local: there.Local, Peer: tupleOf(w.connect().mover).Local}
	nobody := Tuple{Local: there.Local, Peer: there.Local} // the listener answers for it
	for what, want := range map[Tuple]bool{there: true, other: false, nobody: false} {
		if s, sure, err := k.Look(what); s != nil != want || !sure || err != nil {
			t.Errorf("look at %v: %v, sure %v, %v; want one: %v", what, s, sure, err, want)
		}
	}
	if all, err := k.State(there, other); len(all) != 1 || err != nil {
		t.Errorf("state of two, one of which is there: %d sockets, %v", len(all), err)
	}
}

// A socket that is bound to a device takes packets from there alone.
func TestALookFindsWhatIsBoundToADevice(t *testing.T) {
	w := newWorld(t)
	l := w.other.Listen(t, "tcp6", "["+otherAddr+"]:0")
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	bind := func(_, _ string, c syscall.RawConn) (err error) {
		e := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "up") })
		return errors.Join(e, err)
	}
	d := net.Dialer{Control: bind, LocalAddr: &net.TCPAddr{IP: net.ParseIP(moverAddr)}}
	var c net.Conn
	var err error
	w.mover.Do(func() { c, err = d.Dial("tcp6", l.Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer nstest.Receive(t, "the listener", accepted).Close()
	if s, sure, err := openIn(t, w.mover).Look(tupleOf(c)); s == nil || !sure || err != nil {
		t.Errorf("%v, sure %v, %v", s, sure, err)
	}
}

// What a look may not tell, because the socket was at work, State tells all the same.
func TestABusySocketIsReadByThePass(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	k := openIn(t, w.mover)
	go io.Copy(io.Discard, c.other) // ends with the connection
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 1<<16); ; {
			select {
			case <-stop:
				return
			default:
				c.mover.Write(b) // it is for the lock
			}
		}
	}()
	for range 200 {
		if all, err := k.State(tupleOf(c.mover)); len(all) != 1 || err != nil {
			t.Fatalf("%d sockets, %v", len(all), err)
		}
	}
	close(stop)
	<-done
}

func TestALookAtAClosedKickerFails(t *testing.T) {
	w := newWorld(t)
	k := openIn(t, w.mover)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Look(Tuple{}); err == nil {
		t.Error("a closed one looked")
	}
}

// BenchmarkLook and BenchmarkPass are why a few are looked at one by one.
func BenchmarkLook(b *testing.B) {
	w := newWorld(b)
	c, k := w.connect(), openIn(b, w.mover)
	for b.Loop() {
		if s, sure, err := k.Look(tupleOf(c.mover)); s == nil || !sure || err != nil {
			b.Fatal(s, sure, err)
		}
	}
}

func BenchmarkPass(b *testing.B) {
	w := newWorld(b)
	c, k := w.connect(), openIn(b, w.mover)
	for b.Loop() {
		if err := k.pass(SetOf(tupleOf(c.mover)), func(*Socket) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
