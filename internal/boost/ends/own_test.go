package ends

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A port that was taken is nobody else's, and one connects from it.
func TestAPortThatWasTakenIsConnectedFrom(t *testing.T) {
	for _, own := range []string{"127.0.0.1", "::1"} {
		at := map[uint16]bool{}
		for range 100 {
			p, err := Take(netip.MustParseAddr(own))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if at[p.At.Port()] || p.At.Port() == 0 {
				t.Fatalf("port %d is taken twice", p.At.Port())
			}
			at[p.At.Port()] = true
		}
		p, err := Take(netip.MustParseAddr(own))
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(p.At), Control: func(_, _ string, c syscall.RawConn) (err error) {
			c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
			return err
		}}
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := p.Keep(); err != nil {
			t.Fatal(err)
		}
		if again, err := d.Dial("tcp", l.Addr().String()); err == nil {
			again.Close()
			t.Error("somebody else connects from it, too")
		}
		c.Close() // it stays taken beyond its connection
		if other, err := net.Listen("tcp", p.At.String()); err == nil {
			other.Close()
			t.Error("somebody else listens at it")
		}
		if p.Close(); endOf(c.LocalAddr()) != p.At {
			t.Errorf("the connection is from %v, not from %v", c.LocalAddr(), p.At)
		}
	}
}
