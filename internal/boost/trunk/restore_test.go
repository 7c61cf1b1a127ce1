package trunk

import (
	"errors"
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
		end   func(host, own *net.TCPConn)
		read  int  // by the worker before
		whole bool // noted
		goes  bool
	}{
		"both FINs, bytes unread":            {bothFINs, 400, false, true},
		"both FINs, all read, and noted":     {bothFINs, 1000, true, true},
		"both FINs, all read, and not noted": {bothFINs, 1000, false, false},
		"a reset, bytes unread":              {func(h, own *net.TCPConn) { own.CloseWrite(); io.Copy(io.Discard, h); cut(h) }, 400, false, false},
		"a reset that was told, and no FIN of ours": {func(h, own *net.TCPConn) {
			cut(h)
			for failure(own) == nil {
			}
		}, 400, false, false},
		"a reset that was told, behind the one FIN": {func(h, own *net.TCPConn) {
			h.CloseWrite()
			cut(h)
			for failure(own) == nil {
			}
		}, 400, true, false},
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
			c.end(host, own)
			for end := time.Now().Add(within); ; {
				i, err := info(own)
				if err != nil || time.Now().After(end) {
					t.Fatalf("%+v, %v", i, err)
				}
				if i.State == closed {
					break
				}
			}
			p, err := progressOf(Found{Kept: Kept{Whole: c.whole}, Conn: own})
			t.Logf("%+v, %v", p, err)
			if (err == nil) != c.goes || err == nil && (p.read != uint64(c.read) || p.written != 0 || p.whole != (c.read == 1000) || !p.finished) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func bothFINs(host, own *net.TCPConn) {
	own.CloseWrite()
	host.CloseWrite()
	io.Copy(io.Discard, host)
	host.Close()
}

func cut(host *net.TCPConn) {
	host.SetLinger(0)
	host.Close()
}

// Where the writer was told of a reset the reader is shown an end, and takes it for none.
func TestAResetThatTheWriterWasToldOfIsNoEndOfAStream(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, whole := range map[string]bool{"cut": false, "whole": true} {
		t.Run(name, func(t *testing.T) {
			host, own := pair(t)
			defer own.Close()
			if whole {
				host.CloseWrite()
			}
			cut(host)
			for failure(own) == nil { // as a write takes it
			}
			s := Session{end: Attached{Conn: own}}
			n, err := s.readNow(make([]byte, 10))
			if n != 0 || errors.Is(err, io.EOF) != whole {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

// Nobody reads a stream that has ended, and a reset may still come.
func TestAResetBehindAFINEndsTheSession(t *testing.T) {
	for name, meanwhile := range map[string]func(r *rig, client, server *net.TCPConn){
		"nothing more is sent": func(_ *rig, client, server *net.TCPConn) {
			client.CloseWrite()
			receive(server)
			cut(client)
		},
		"both FINs are under way": func(r *rig, client, server *net.TCPConn) {
			server.SetReadBuffer(4 << 10) // so the agent's FIN stays behind bytes that nobody reads
			server.CloseWrite()
			receive(client)
			send(r.t.(*testing.T), client, 256<<10, 6)
			r.isFinished()
			cut(server)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			client, server := r.dial()
			meanwhile(r, client, server)
			r.isEmpty(1)
			client.Close()
			server.Close()
		})
	}
}

// isFinished waits until the far agent has sent the FIN of the one session there is.
func (r *rig) isFinished() {
	r.t.Helper()
	until(r.t, func() error {
		r.far.mu.Lock()
		defer r.far.mu.Unlock()
		for _, s := range r.far.sessions {
			if s.finished && s.whole {
				return nil
			}
		}
		return errors.New("no FIN goes to the server")
	})
}
