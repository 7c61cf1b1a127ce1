package repair

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

const serverAddr, clientAddr = "fd5e::9", "fd5e::1"

// A world is two hosts with the same virtual address, of which the router believes one.
type world struct {
	client, router, a, b *nstest.NS
}

func newWorld(t *testing.T) *world {
	w := &world{nstest.New(t, "client"), nstest.New(t, "router"), nstest.New(t, "a"), nstest.New(t, "b")}
	w.router.Forward(t)
	for _, h := range []struct {
		ns         *nstest.NS
		port, addr string
	}{{w.client, "c", clientAddr}, {w.a, "a", serverAddr}, {w.b, "b", serverAddr}} {
		nstest.Veth(t, h.ns, "up", w.router, h.port)
		h.ns.Addr(t, "lo", h.addr+"/128")
		h.ns.Route(t, "::/0", w.router.LinkLocal(t, h.port).String(), "up")
		w.router.Route(t, h.addr+"/128", h.ns.LinkLocal(t, "up").String(), h.port)
	}
	w.lead(t, w.a, "a")
	return w
}

func (w *world) lead(t *testing.T, to *nstest.NS, port string) {
	w.router.Route(t, serverAddr+"/128", to.LinkLocal(t, "up").String(), port)
}

func (w *world) connect(t *testing.T) (client, server *net.TCPConn) {
	l := w.a.Listen(t, "tcp6", "["+serverAddr+"]:7")
	c, err := w.client.Dial("tcp6", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func control(t *testing.T, c *net.TCPConn, f func(fd int) error) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := errors.Join(raw.Control(func(fd uintptr) { failed = f(int(fd)) }), failed); err != nil {
		t.Fatal(err)
	}
}

// move takes the server's connection to the other host, and closes the old socket.
func (w *world) move(t *testing.T, server *net.TCPConn) (moved net.Conn, c *Connection) {
	t.Helper()
	w.router.Run(t, "ip", "-6", "route", "replace", "blackhole", serverAddr+"/128")
	control(t, server, func(fd int) (err error) { c, err = Take(fd); return err })
	server.Close()
	var fd int
	var err error
	w.b.Do(func() { fd, err = c.Restore() })
	if err != nil {
		t.Fatal(err)
	}
	w.lead(t, w.b, "b")
	if err := c.Finish(fd); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "moved")
	defer f.Close()
	if moved, err = net.FileConn(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { moved.Close() })
	return moved, c
}

// The client reads nothing at first, or hears nothing: the server's queue is full of unsent bytes, or of sent
// ones also, when it moves, and holds bytes of the client's that it has not read.
func TestAConnectionMovesWithItsQueues(t *testing.T) {
	t.Run("the client does not read", func(t *testing.T) { moveQueues(t, false) })
	t.Run("the client hears nothing", func(t *testing.T) { moveQueues(t, true) })
}

func moveQueues(t *testing.T, deaf bool) {
	w := newWorld(t)
	client, server := w.connect(t)
	down, up := noise(8<<20), noise(100_000)
	sent := 0
	if !deaf {
		sent = stuff(t, server, down)
	}
	if _, err := client.Write(up[:60_000]); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 1000)
	if _, err := io.ReadFull(server, head); err != nil || !bytes.Equal(head, up[:1000]) {
		t.Fatalf("before the move: %v", err)
	}
	if deaf {
		w.router.Run(t, "ip", "-6", "route", "replace", "blackhole", clientAddr+"/128")
		sent = stuff(t, server, down)
	}
	moved, c := w.move(t, server)
	w.router.Route(t, clientAddr+"/128", w.client.LinkLocal(t, "up").String(), "c")
	t.Logf("moved with %d bytes sent, %d unsent, %d received", len(c.Sent), len(c.Unsent), len(c.Received))
	if len(c.Unsent) == 0 || len(c.Received) == 0 || deaf && len(c.Sent) == 0 {
		t.Errorf("a queue was empty: the test shows less than it should")
	}
	go func() { // ends with the connection
		moved.Write(down[sent:])
		moved.(*net.TCPConn).CloseWrite()
	}()
	go func() {
		client.Write(up[60_000:])
		client.CloseWrite()
	}()
	rest := make(chan []byte, 1)
	go func() { b, _ := io.ReadAll(moved); rest <- b }()
	client.SetReadDeadline(time.Now().Add(nstest.Deadline))
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, down) {
		t.Errorf("the client read %d bytes of %d (equal: %v), %v\nlook at: ss -tanoi in both namespaces", len(got), len(down), bytes.Equal(got, down), err)
	}
	if got := nstest.Receive(t, "ss -tanoi in both namespaces", rest); !bytes.Equal(got, up[1000:]) {
		t.Errorf("the moved server read %d bytes of %d, or others", len(got), len(up)-1000)
	}
}

// stuff writes until the queue is full.
func stuff(t *testing.T, c *net.TCPConn, b []byte) (sent int) {
	t.Helper()
	c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	defer c.SetWriteDeadline(time.Time{})
	sent, err := c.Write(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("wrote %d of %d bytes to a reader that sleeps: %v", sent, len(b), err)
	}
	return sent
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func TestATakenConnectionCanGoOn(t *testing.T) {
	w := newWorld(t)
	client, server := w.connect(t)
	control(t, server, func(fd int) error {
		if _, err := Take(fd); err != nil {
			return err
		}
		return Thaw(fd)
	})
	io.WriteString(server, "still here")
	got := make([]byte, 10)
	if _, err := io.ReadFull(client, got); err != nil || string(got) != "still here" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestClosingConnectionsStay(t *testing.T) {
	w := newWorld(t)
	client, server := w.connect(t)
	client.CloseWrite()
	io.ReadAll(server) // until its FIN is here
	control(t, server, func(fd int) error {
		if _, err := Take(fd); !errors.Is(err, ErrState) {
			t.Errorf("take a connection whose peer closed: %v, want ErrState", err)
		}
		return nil
	})
}
