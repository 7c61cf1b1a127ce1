package boostd

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// eachAtOnce is each, in a network whose agents accept clients before the server has answered.
func eachAtOnce(t *testing.T, f func(t *testing.T, n *network, of family)) {
	n := newNetwork(t)
	n.accept = ", accept: at-once"
	n.both()
	for _, of := range families {
		t.Run(of.name, func(t *testing.T) {
			m := *n
			m.t = t
			f(t, &m, of)
		})
	}
}

// A heldServer has a listener whose queue is full: SYNs are dropped unheard until somebody takes what is in it.
type heldServer struct {
	t      *testing.T
	l      net.Listener
	filler net.Conn
}

func (n *network) holdServer(f family, port string) *heldServer {
	n.t.Helper()
	h := &heldServer{t: n.t, l: n.server.Listen(n.t, "tcp", net.JoinHostPort(plain(f.server), port))}
	raw, err := h.l.(*net.TCPListener).SyscallConn()
	if err != nil {
		n.t.Fatal(err)
	}
	if fail := raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), 0) }); fail != nil || err != nil { // room for one
		n.t.Fatal(fail, err)
	}
	if h.filler, err = n.server.Dial("tcp", h.l.Addr().String()); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { h.filler.Close(); h.l.Close() })
	return h
}

// goOn has the server take connections; it returns the client's.
func (h *heldServer) goOn() net.Conn {
	h.t.Helper()
	for range 2 {
		h.l.(*net.TCPListener).SetDeadline(time.Now().Add(nstest.Deadline))
		c, err := h.l.Accept()
		if err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() { c.Close() })
		if c.RemoteAddr().String() != h.filler.LocalAddr().String() {
			c.SetDeadline(time.Now().Add(nstest.Deadline))
			return c
		}
	}
	h.t.Fatal("no connection of the client comes")
	return nil
}

// early is a client that was accepted while its server holds back, and has said something.
func (n *network) early(h *heldServer, says string) net.Conn {
	n.t.Helper()
	c, err := n.client.Dial("tcp", h.l.Addr().String()) // would wait for as long as the server does
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(2 * nstest.Deadline))
	if _, err := io.WriteString(c, says); err != nil {
		n.t.Fatal(err)
	}
	return c
}

// asked waits until the far agent asks the server.
func (n *network) asked(port string) {
	n.t.Helper()
	nstest.Wait(n.t, n.agents["x"].Output()+n.agents["y"].Output(), func() error {
		if out := n.y.Run(n.t, "ss", "-Htan", "state", "syn-sent", "dport", "=", port); out == "" {
			return errors.New("the far agent has not asked the server")
		}
		return nil
	})
}

func wantReset(t *testing.T, c net.Conn) {
	t.Helper()
	if got, err := c.Read(make([]byte, 1)); got > 0 || err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client got %d bytes, %v: want a reset", got, err)
	}
}

// The client's handshake is over, and its request is there, before the server has said a word.
func TestAClientIsAcceptedAtOnceAndServed(t *testing.T) {
	safety.Test(t, safety.Bytes)
	eachAtOnce(t, func(t *testing.T, n *network, f family) {
		h := n.holdServer(f, "7")
		c := n.early(h, "all that goes")
		n.asked("7")
		s := h.goOn()
		if s.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("the client is %v, the server sees %v", c.LocalAddr(), s.RemoteAddr())
		}
		go func() { io.Copy(s, s); s.Close() }()
		io.WriteString(c, " there and back")
		c.(*net.TCPConn).CloseWrite()
		if b, err := io.ReadAll(c); err != nil || string(b) != "all that goes there and back" {
			t.Errorf("%q came back, %v", b, err)
		}
		url, sum := n.serve(f, 20<<20)
		out := filepath.Join(t.TempDir(), "out")
		n.client.Run(t, "curl", "-sS", "--fail", "-o", out, url)
		if sumOf(t, out) != sum {
			t.Error("the file is another one")
		}
	})
}

// A server that refuses, and one that is silent, are heard late, and as resets.
func TestAServersNoIsAResetOfAnEarlyClient(t *testing.T) {
	safety.Test(t, safety.Bytes)
	eachAtOnce(t, func(t *testing.T, n *network, f family) {
		silent := n.early(n.holdServer(f, "7"), "hello")
		c, err := n.client.Dial("tcp", net.JoinHostPort(plain(f.server), "99"))
		switch {
		case errors.Is(err, syscall.ECONNRESET): // it was there before this program looked whether it is connected; a SYN is refused
		case err != nil:
			t.Errorf("a port at which nobody listens: %v: the client is to be accepted", err)
		default:
			defer c.Close()
			c.SetDeadline(time.Now().Add(nstest.Deadline))
			io.WriteString(c, "hello")
			wantReset(t, c)
		}
		wantReset(t, silent)
	})
}

// A worker that dies before the server has answered: the near one's clients are reset; where the far one's dies a client that
// has said nothing goes on, and one that has may have been heard, and is reset.
func TestEarlyClientsOfADeadWorkerAreResetOrGoOn(t *testing.T) {
	safety.Test(t, safety.Bytes)
	eachAtOnce(t, func(t *testing.T, n *network, f family) {
		h := n.holdServer(f, "7")
		c, quiet := n.early(h, "hello"), n.early(h, "")
		n.asked("7")
		n.kill("x", syscall.SIGKILL)
		wantReset(t, c)
		wantReset(t, quiet)
		n.carried()
		c, quiet = n.early(h, "hello"), n.early(h, "")
		nstest.Wait(t, n.agents["y"].Output(), func() error {
			if out := n.y.Run(t, "ss", "-Htan", "state", "syn-sent", "dport", "=", "7"); strings.Count(out, "\n") < 2 {
				return errors.New("the far agent has not asked the server for both:\n" + out)
			}
			return nil
		})
		n.kill("y", syscall.SIGKILL)
		wantReset(t, c)
		s := h.goOn()
		if s.RemoteAddr().String() != quiet.LocalAddr().String() {
			t.Errorf("the server is asked by %v, not by %v", s.RemoteAddr(), quiet.LocalAddr())
		}
		io.WriteString(quiet, "late")
		quiet.(*net.TCPConn).CloseWrite()
		if b, err := io.ReadAll(s); err != nil || string(b) != "late" {
			t.Errorf("the server got %q, %v", b, err)
		}
	})
}
