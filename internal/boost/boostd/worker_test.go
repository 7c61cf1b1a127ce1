package boostd

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// worker is the process that does an agent's work now; 0: none does.
func (n *network) worker(name string) int {
	for _, pid := range n.agents[name].Children() {
		return pid
	}
	return 0
}

// kill kills an agent's worker, or does otherwise to it, and waits for the next one.
func (n *network) kill(name string, by syscall.Signal) {
	n.t.Helper()
	was := 0
	nstest.Wait(n.t, n.agents[name].Output(), func() error {
		if was = n.worker(name); was == 0 {
			return fmt.Errorf("agent %s has no worker", name)
		}
		return nil
	})
	syscall.Kill(was, by)
	nstest.Wait(n.t, n.agents[name].Output(), func() error {
		if now := n.worker(name); now == 0 || now == was {
			return fmt.Errorf("agent %s has worker %d after %d", name, now, was)
		}
		return nil
	})
}

// connect is a connection of the client to a port at which nobody else listens, with both its ends; it is carried.
func (n *network) connect(f family, port string) (client, server *net.TCPConn) {
	n.t.Helper()
	l := n.server.Listen(n.t, "tcp", net.JoinHostPort(plain(f.server), port))
	defer l.Close()
	c, err := n.client.Dial("tcp", l.Addr().String())
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close(); s.Close() })
	if !strings.Contains(n.y.Run(n.t, "ss", "-Htn", "dport", "=", port), plain(f.client)) {
		n.t.Fatal("the connection is not carried")
	}
	for _, end := range []net.Conn{c, s} {
		end.SetDeadline(time.Now().Add(2 * nstest.Deadline))
	}
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// A way is one direction of a connection: what is sent into it, and what comes out.
type way struct {
	t        *testing.T
	name     string
	in, out  *net.TCPConn
	bytes    int
	progress chan int
	all      sync.WaitGroup
	got      [32]byte
	end      error
	n        int
}

func goes(t *testing.T, name string, in, out *net.TCPConn, text []byte) *way {
	w := &way{t: t, name: name, in: in, out: out, bytes: len(text), progress: make(chan int, 1<<16)}
	w.all.Go(func() {
		if _, err := in.Write(text); err != nil {
			t.Errorf("%s: send: %v", name, err)
			return
		}
		if err := in.CloseWrite(); err != nil {
			t.Errorf("%s: FIN: %v", name, err)
		}
	})
	w.all.Go(func() {
		sum := sha256.New()
		b := make([]byte, 64<<10)
		for w.end == nil {
			var n int
			n, w.end = out.Read(b)
			sum.Write(b[:n])
			w.n += n
			w.progress <- w.n
		}
		w.got = [32]byte(sum.Sum(nil))
		close(w.progress)
	})
	return w
}

// until waits until so many bytes have come out.
func (w *way) until(bytes int) {
	w.t.Helper()
	late := time.After(nstest.Deadline)
	for {
		select {
		case n, ok := <-w.progress:
			if n >= bytes || !ok {
				return
			}
		case <-late:
			w.t.Fatalf("%s: %d bytes have come, waited in vain for %d", w.name, w.n, bytes)
		}
	}
}

// whole waits for the end, which is that of the whole stream.
func (w *way) whole(text []byte) {
	w.t.Helper()
	for range w.progress {
	}
	w.all.Wait()
	if !errors.Is(w.end, io.EOF) || w.n != len(text) || w.got != sha256.Sum256(text) {
		w.t.Errorf("%s: %d of %d bytes have come, or others; it ended by %v", w.name, w.n, len(text), w.end)
	}
}

// Workers are killed at both sides, again and again, while a connection carries bytes both ways, another one is silent, and
// a third is closed at one end: all of them go on.
func TestConnectionsOutliveTheirWorkers(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n := newNetwork(t)
	n.both()
	for i, f := range families {
		t.Run(f.name, func(t *testing.T) {
			n.t = t
			idleClient, idleServer := n.connect(f, "11")
			halfClient, halfServer := n.connect(f, "12")
			if err := halfClient.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(halfServer); len(b) > 0 || err != nil {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			client, server := n.connect(f, "13")
			text := []byte(content(24 << 20))
			back := bytes.Repeat(text[1:1<<20], 24)
			up := goes(t, "to the server", client, server, text)
			down := goes(t, "to the client", server, client, back)
			for step := range 6 {
				up.until((step + 1) * len(text) / 8)
				n.kill([]string{"x", "y"}[(step+i)%2], syscall.SIGKILL)
			}
			up.whole(text)
			down.whole(back)
			if t.Failed() || testing.Verbose() {
				t.Logf("x: %s\ny: %s", n.agents["x"].Output(), n.agents["y"].Output())
			}
			goes(t, "of the half", halfServer, halfClient, text[:1<<20]).whole(text[:1<<20])
			there := goes(t, "of the silent one", idleClient, idleServer, text[:1<<20])
			goes(t, "of the silent one, back", idleServer, idleClient, back[:1<<20]).whole(back[:1<<20])
			there.whole(text[:1<<20])
		})
	}
}

// A worker that stands still for a second is replaced as one that has died; both workers may die at once.
func TestAWorkerThatStandsStillIsReplaced(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n := newNetwork(t)
	n.both()
	client, server := n.connect(families[1], "13")
	text := []byte(content(16 << 20))
	up := goes(t, "to the server", client, server, text)
	up.until(len(text) / 4)
	n.kill("x", syscall.SIGSTOP)
	up.until(len(text) / 2)
	var both sync.WaitGroup
	for _, name := range []string{"x", "y"} {
		both.Go(func() { n.kill(name, syscall.SIGKILL) })
	}
	both.Wait()
	up.whole(text)
	n.carried()
}

// An agent's worker makes room for one of the program that is there by then, under a connection that goes on.
func TestAProgramTakesOverUnderAConnection(t *testing.T) {
	safety.Test(t, safety.Flow)
	n := newNetwork(t)
	n.both()
	client, server := n.connect(families[0], "13")
	text := []byte(content(16 << 20))
	up := goes(t, "to the server", client, server, text)
	for i, name := range []string{"x", "y"} {
		up.until((i + 1) * len(text) / 3)
		n.agents[name].Signal(syscall.SIGUSR2)
		n.agents[name].WaitFor(t, "the worker makes room for another program")
		n.agents[name].WaitFor(t, "another worker has taken over")
	}
	up.whole(text)
	n.carried()
}

// What ends while nobody works is ended when the next worker finds it: a reset is told as a reset, the end of a stream as
// its end.
func TestWhatEndsWithoutAWorkerIsFound(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n := newNetwork(t)
	n.both()
	f := families[0]
	cutClient, cutServer := n.connect(f, "11")
	endClient, endServer := n.connect(f, "12")
	was := n.worker("x")
	syscall.Kill(was, syscall.SIGSTOP)
	if _, err := endClient.Write([]byte("the end")); err != nil {
		t.Fatal(err)
	}
	endClient.CloseWrite()
	cutClient.SetLinger(0)
	cutClient.Close()
	syscall.Kill(was, syscall.SIGKILL)
	if b, err := io.ReadAll(endServer); string(b) != "the end" || err != nil {
		t.Errorf("the stream that has ended: %q, %v", b, err)
	}
	if got, err := cutServer.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection that was cut: %d bytes, %v: want a reset", got, err)
	}
	goes(t, "back", endServer, endClient, []byte("and back")).whole([]byte("and back"))
}

// Connections come and go while workers are killed at whatever moment, and in a long run both processes of an agent now and then: each
// carries all of its bytes, or is reset at both ends; none ends early as if it was whole. Nothing is left of them behind that.
func TestNoStreamIsCutShortWhileWorkersDie(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, accept := range lane.Accepts {
		t.Run(accept, func(t *testing.T) {
			n := newNetwork(t)
			n.accept = ", accept: " + accept
			n.both()
			n.comeAndGo()
		})
	}
}

// comeAndGo kills workers while connections come and go.
func (n *network) comeAndGo() {
	t, f := n.t, families[1]
	l := n.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "14"))
	text := []byte(content(1 << 20))
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { answer(c.(*net.TCPConn), text) })
		}
	})
	kills, at := 10, 20 // of each mode, and connections at a time
	if nstest.Long() {
		kills, at = 500, 50
	}
	rules := n.x.Routing(t) + n.y.Routing(t)
	stop, visited := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	whole, cut := 0, map[string]int{}
	for range at {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := n.visit(l.Addr().String(), text)
				mu.Lock()
				if err == nil {
					whole++
				} else {
					cut[err.Error()]++
				}
				if errors.Is(err, errOther) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) { // none stands still
					t.Error(err)
				}
				mu.Unlock()
				select {
				case visited <- struct{}{}:
				default:
				}
			}
		})
	}
	for i := range kills {
		for range rand.IntN(20) { // a worker may die at whatever moment
			nstest.Receive(t, "connections that come and go", visited)
		}
		if i%5 == 4 {
			syscall.Kill(n.worker("x"), syscall.SIGKILL) // both at once
		}
		name := []string{"x", "y"}[rand.IntN(2)]
		if n.kill(name, syscall.SIGKILL); nstest.Long() && i%10 == 9 {
			n.agents[name].Signal(syscall.SIGKILL) // its keeper, with what that holds
			n.agents[name].WaitEnd(t)
			n.start(name)
		}
	}
	close(stop)
	all.Wait()
	l.Close()
	serving.Wait()
	t.Logf("%d kills: %d connections were whole, others were not: %v", kills, whole, cut)
	if whole == 0 {
		t.Error("no connection was whole")
	}
	n.carried()
	n.forgets()
	if now := n.x.Routing(t) + n.y.Routing(t); now != rules {
		t.Errorf("rules and routes before:\n%s\nand after:\n%s", rules, now)
	}
}

// errOther says that a stream had an end that was not its end, or other bytes.
var errOther = errors.New("a stream ended as if it was whole, and was not")

// visit asks for so many bytes, and looks at them.
func (n *network) visit(at string, text []byte) error {
	looked := make(chan struct{})
	stands := time.AfterFunc(nstest.Deadline/2, func() { defer close(looked); n.lookAtSYNs() })
	c, err := n.client.Dial("tcp", at)
	if !stands.Stop() {
		<-looked
	}
	if err != nil {
		return fmt.Errorf("connect: %w", cause(err))
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(nstest.Deadline))
	want := rand.IntN(len(text))
	if _, err := fmt.Fprintf(c, "%d\n", want); err != nil {
		return fmt.Errorf("ask: %w", cause(err))
	}
	got, err := io.ReadAll(c)
	switch {
	case err != nil && !bytes.Equal(got, text[:min(len(got), want)]) || err == nil && !bytes.Equal(got, text[:want]):
		return fmt.Errorf("%w: %d of %d bytes, or others", errOther, len(got), want)
	case err != nil:
		return fmt.Errorf("read: %w", cause(err))
	}
	return nil
}

// cause is an error without where it happened: connections differ in that.
func cause(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// answer sends as many bytes as it is asked for.
func answer(c *net.TCPConn, text []byte) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(nstest.Deadline))
	var bytes int
	if _, err := fmt.Fscanln(c, &bytes); err != nil {
		c.SetLinger(0) // an end of ours would be one that the client takes for the whole
		return
	}
	if _, err := c.Write(text[:bytes]); err != nil {
		c.SetLinger(0)
	}
}
