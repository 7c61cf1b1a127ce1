package trunk

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hole has a socket's kernel hear nothing of its peer any more, and so acknowledge nothing.
func hole(t *testing.T, c *net.TCPConn) {
	t.Helper()
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	if err := onSocket(c, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing})
	}); err != nil {
		t.Fatal(err)
	}
}

// A path that carries nothing any more is no machine that is lost, though nothing comes by the other one, which is idle: that
// one is asked. Where it answers nothing either the machine is silent.
func TestAPathThatIsLostIsNoMachineThatIsLost(t *testing.T) {
	const limit = 400 * time.Millisecond
	r, _, c := overTwo(t, 0)
	other := r.others[c.id]
	if r.near.Silent(time.Now(), limit) {
		t.Fatal("it is silent from the beginning on")
	}
	for _, both := range r.live {
		hole(t, both[1])
	}
	r.near.mu.Lock()
	one := r.near.conns[1]
	one.asks = true
	wake(one.work)
	r.near.mu.Unlock()
	until(t, func() error {
		now := time.Now()
		if r.near.Silent(now, limit) {
			t.Fatal("the other agent's machine is taken for lost, which answers by the second path")
		}
		r.near.mu.Lock()
		defer r.near.mu.Unlock()
		if !one.path.hushed(now, 2*limit) {
			return errors.New("something is heard by the path that is lost, or nothing waits there")
		}
		return nil
	})
	hole(t, other)
	until(t, func() error {
		if !r.near.Silent(time.Now(), limit) {
			return errors.New("it is not silent, though neither path brings a segment")
		}
		return nil
	})
	if n := r.near.Connections(); n != 3 {
		t.Errorf("that took until %d connections of 3 were left", n)
	}
}
