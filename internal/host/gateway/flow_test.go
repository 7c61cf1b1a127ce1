package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"github.com/pires/go-proxyproto"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestBytesAndTheEndOfADirectionArePassedOn(t *testing.T) {
	safety.Test(t, safety.Bytes)
	port := serve(t, echo)
	sock := filepath.Join(t.TempDir(), "web.sock")
	_, at := start(t, Config{Listen: []string{fmt.Sprintf("unix:%s=web:%d", sock, port)}}, fmt.Sprintf("=web:%d", port))
	blob := random(8 << 20)
	for _, a := range [][2]string{{"tcp", at[0]}, {"unix", sock}} {
		c, err := net.Dial(a[0], a[1])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(nstest.Deadline))
		go func() {
			c.Write(blob)
			c.(stream).CloseWrite()
		}()
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, blob) {
			t.Errorf("%s: %d of %d bytes came back, %v", a[0], len(got), len(blob), err)
		}
	}
}

func TestAResetIsPassedOnAsOne(t *testing.T) {
	seen := make(chan error, 1)
	port := serve(t, func(c *net.TCPConn) {
		b := make([]byte, 1)
		c.Read(b)
		c.Write(b)
		if b[0] == 's' { // the server resets
			c.SetLinger(0)
			c.Close()
			return
		}
		_, err := c.Read(b)
		seen <- err
		c.Close()
	})
	_, at := start(t, Config{}, fmt.Sprintf("=web:%d", port))
	c := dial(t, at[0])
	ask(c, "s")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server has reset, its client sees %v", err)
	}
	c = dial(t, at[0])
	ask(c, "c")
	c.SetLinger(0)
	c.Close()
	if err := nstest.Receive(t, "the server", seen); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client has reset, its server sees %v", err)
	}
}

func TestAServerThatFailsBeforeAByteIsReplaced(t *testing.T) {
	var came atomic.Int32
	port := serve(t, func(c *net.TCPConn) {
		if came.Add(1) <= 2 { // it accepts, and is gone
			c.SetLinger(0)
			c.Close()
			return
		}
		echo(c)
	})
	g, at := start(t, Config{}, fmt.Sprintf("=web:%d", port))
	c := dial(t, at[0])
	g.eventually("a third server", func() bool { return came.Load() == 3 })
	if err := ask(c, "hello"); err != nil {
		t.Error(err)
	}
}

func TestAServerThatResetsAfterAByteIsNotReplaced(t *testing.T) {
	var came atomic.Int32
	port := serve(t, func(c *net.TCPConn) {
		came.Add(1)
		c.Read(make([]byte, 1))
		c.SetLinger(0)
		c.Close()
	})
	_, at := start(t, Config{}, fmt.Sprintf("=web:%d", port))
	c := dial(t, at[0])
	c.Write([]byte("x"))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) || came.Load() != 1 {
		t.Errorf("the client sees %v; %d servers were asked to do it", err, came.Load())
	}
}

// held is a port of ::1 that refuses until listen is called, and that nobody else can take meanwhile.
func held(t *testing.T) (port int, listen func() net.Listener) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet6{Addr: netip.IPv6Loopback().As16()})
	}
	at, at0 := unix.Getsockname(fd)
	if err := errors.Join(err, at0); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "held")
	t.Cleanup(func() { f.Close() })
	return at.(*unix.SockaddrInet6).Port, func() net.Listener {
		if err := unix.Listen(fd, 16); err != nil {
			t.Fatal(err)
		}
		l, err := net.FileListener(f)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestARefusedConnectionIsTriedAgain(t *testing.T) {
	port, listen := held(t)
	g, at := start(t, Config{}, fmt.Sprintf("=web:%d", port))
	c := dial(t, at[0])
	g.eventually("a second try", func() bool { return g.all()[0].count.retried.Load() > 0 })
	l := listen()
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			echo(c.(*net.TCPConn))
		}
	}()
	if err := ask(c, "hello"); err != nil {
		t.Error(err)
	}
}

func TestWhereNobodyServesTheClientIsReset(t *testing.T) {
	_, gone, _ := net.SplitHostPort(free(t))
	g, at := start(t, Config{}, "=web:"+gone, "=nobody:80")
	for i, a := range at {
		if err := sentAway(a); err != nil {
			t.Errorf("%s: %v", a, err)
		}
		if n := g.all()[i].count.failed.Load(); n != 1 {
			t.Errorf("%s: %d failed, want 1", a, n)
		}
	}
	if !strings.Contains(g.out.String(), "nobody") {
		t.Error("the log does not name the name that is not there")
	}
}

// sentAway is an error where a client is not reset; that may come before connecting has returned.
func sentAway(at string) error {
	c, err := net.Dial("tcp", at)
	if err == nil {
		defer c.Close()
		c.SetDeadline(time.Now().Add(nstest.Deadline))
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("%v, want a reset", err)
	}
	return nil
}

func TestServersLearnTheirClientByThePROXYProtocol(t *testing.T) {
	heads := make(chan *proxyproto.Header, 1)
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pl := &proxyproto.Listener{Listener: l}
	go func() {
		for {
			c, err := pl.Accept()
			if err != nil {
				return
			}
			go func() {
				p := c.(*proxyproto.Conn)
				heads <- p.ProxyHeader()
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	_, at := start(t, Config{}, fmt.Sprintf("=web:%d,proxy=v1", port), fmt.Sprintf("=web:%d,proxy=v2", port))
	for i, a := range at {
		c := dial(t, a)
		if err := ask(c, "hello"); err != nil {
			t.Error(err)
		}
		h := nstest.Receive(t, "the server", heads)
		if h == nil || int(h.Version) != i+1 || h.SourceAddr.String() != c.LocalAddr().String() || h.DestinationAddr.String() != a {
			t.Errorf("v%d: the server saw %+v, the client is %v", i+1, h, c.LocalAddr())
		}
	}
}

func TestLimitsHoldAndEnd(t *testing.T) {
	port := serve(t, echo)
	g, at := start(t, Config{PerClient: 3}, fmt.Sprintf("=web:%d,max=2", port), fmt.Sprintf("=web:%d", port))
	one, two := dial(t, at[0]), dial(t, at[0])
	for _, c := range []net.Conn{one, two} {
		if err := ask(c, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	third := dial(t, at[0]) // waits in the queue
	third.Write([]byte("hello"))
	other := dial(t, at[1])
	if err := ask(other, "hello"); err != nil {
		t.Errorf("a full listener is in another's way: %v", err)
	}
	if err := sentAway(at[1]); err != nil {
		t.Errorf("a fourth of one client: %v", err)
	}
	if n := g.all()[0].count.accepted.Load(); n != 2 {
		t.Errorf("%d accepted where 2 are the most", n)
	}
	other.Close()
	one.Close()
	if err := ask(third, ""); err != nil {
		t.Error(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(third, got); err != nil || string(got) != "hello" {
		t.Errorf("who waited gets %q, %v", got, err)
	}
}

func TestASlowClientCostsNobodyElse(t *testing.T) {
	var sent atomic.Int64
	port := serve(t, func(c *net.TCPConn) {
		defer c.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := c.Write(b)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	quick := serve(t, echo)
	_, at := start(t, Config{}, fmt.Sprintf("=web:%d", port), fmt.Sprintf("=web:%d", quick))
	slow := dial(t, at[0])
	slow.SetReadBuffer(4096)
	last := int64(-1)
	nstest.Wait(t, "the server that sends", func() error { // until nothing more fits
		time.Sleep(50 * time.Millisecond)
		if now := sent.Load(); now != last || now == 0 {
			last = now
			return fmt.Errorf("%d bytes are on their way", now)
		}
		return nil
	})
	if last > 32<<20 {
		t.Errorf("a client that reads nothing was sent %d MB", last>>20)
	}
	if err := ask(dial(t, at[1]), "hello"); err != nil {
		t.Error(err)
	}
}

// perFlow is what an idle connection may take, with its client and its server, which are in this process too.
const perFlow = 24 << 10

func TestAnIdleConnectionIsSmall(t *testing.T) {
	port := serve(t, echo)
	_, at := start(t, Config{}, fmt.Sprintf("=web:%d", port))
	memory := func() int64 { // it may become less: what tests before left is freed at whatever moment
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	ask(dial(t, at[0]), "hello")
	before := memory()
	const flows = 500
	for range flows {
		if err := ask(dial(t, at[0]), "hello"); err != nil {
			t.Fatal(err)
		}
	}
	if each := (memory() - before) / flows; each > perFlow {
		t.Errorf("%d bytes for each flow, at most %d", each, perFlow)
	}
}
