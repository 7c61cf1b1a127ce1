package trunk

import (
	"io"
	"net"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"
)

// What the kernel tells of a connection that has ended while nobody looked: with both FINs and bytes that are still to be
// read it goes on; one that was cut does not, nor one of which that cannot be told.
func TestAConnectionThatHasEndedIsWholeOrNot(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, c := range map[string]struct {
		end   func(host *net.TCPConn)
		read  int // by the worker before
		kept  Kept
		goes  bool
		whole bool
	}{
		"both FINs, bytes unread":              {func(h *net.TCPConn) { h.CloseWrite(); io.Copy(io.Discard, h); h.Close() }, 400, Kept{Finished: true}, true, false},
		"both FINs, all read, and noted":       {func(h *net.TCPConn) { h.CloseWrite(); io.Copy(io.Discard, h); h.Close() }, 1000, Kept{Finished: true, Whole: true}, true, true},
		"both FINs, all read, and not noted":   {func(h *net.TCPConn) { h.CloseWrite(); io.Copy(io.Discard, h); h.Close() }, 1000, Kept{Finished: true}, false, false},
		"a reset, bytes unread":                {func(h *net.TCPConn) { io.Copy(io.Discard, h); h.SetLinger(0); h.Close() }, 400, Kept{Finished: true}, false, false},
		"both FINs, but our own was not noted": {func(h *net.TCPConn) { h.CloseWrite(); io.Copy(io.Discard, h); h.Close() }, 400, Kept{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			host, own := pair(t)
			defer own.Close()
			if _, err := host.Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(own, make([]byte, c.read)); err != nil {
				t.Fatal(err)
			}
			own.CloseWrite()
			c.end(host)
			for end := time.Now().Add(within); ; {
				i, err := info(own)
				if err != nil || time.Now().After(end) {
					t.Fatalf("%+v, %v", i, err)
				}
				if i.State == closed {
					break
				}
			}
			p, err := progressOf(Found{Kept: c.kept, Conn: own})
			t.Logf("%+v, %v", p, err)
			if (err == nil) != c.goes || err == nil && (p.read != uint64(c.read) || p.written != 0 || p.whole != c.whole || !p.finished) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}
