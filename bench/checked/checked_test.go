package checked

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func TestEveryByteFollowsFromItsPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Pattern(rapid.Uint64().Draw(t, "seed"))
		at, n := rapid.Uint64().Draw(t, "at"), rapid.IntRange(1, 100).Draw(t, "n")
		b := make([]byte, n)
		p.Fill(b, at)
		if i := p.Check(b, at); i != -1 {
			t.Fatalf("byte %d of %x differs from itself", i, b)
		}
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		rest := make([]byte, n-cut)
		p.Fill(rest, at+uint64(cut))
		if !bytes.Equal(rest, b[cut:]) {
			t.Fatalf("from %d: %x, after %d bytes: %x", at, b, cut, rest)
		}
		broken := rapid.IntRange(0, n-1).Draw(t, "broken")
		b[broken] ^= 1
		if i := p.Check(b, at); i != broken {
			t.Fatalf("byte %d is wrong, said %d", broken, i)
		}
	})
}

func TestAHelloIsReadAsWritten(t *testing.T) {
	h := Hello{Flow: 7, Seed: 1 << 63, Up: Bulk, Down: 16e6, Step: time.Millisecond}
	if got, err := ParseHello(h.Append(nil)); got != h || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(Hello{Step: time.Second}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := ParseHello(b); err == nil && !bytes.Equal(h.Append(nil), b[:helloLen]) {
			t.Errorf("%x is read as %+v", b, h)
		}
	})
}

func FuzzDatagram(f *testing.F) {
	f.Add(datagram{1, 2, 3}.append(nil, Up(2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, _, ok := parseDatagram(b, true); ok && !bytes.HasPrefix(b, d.append(nil, Up(d.seed))) {
			t.Errorf("%x is read as %+v", b, d)
		}
	})
}

func TestATallyKnowsWhatIsMissing(t *testing.T) {
	var y tally
	for seq := range uint64(5) {
		y.ask(seq)
	}
	for _, seq := range []uint64{3, 0, 3, 9} {
		y.answer(seq)
	}
	if y.answered != 2 || y.duplicates != 2 || len(y.open) != 3 || y.overtaken() != 2 { // 1 and 2, and not 4
		t.Errorf("%+v", y)
	}
}

// notes collects what programs tell.
type notes struct {
	t *testing.T
	c chan Note
}

func newNotes(t *testing.T) *notes { return &notes{t, make(chan Note, 1<<12)} }

func (n *notes) Write(b []byte) (int, error) {
	var one Note
	if err := json.Unmarshal(b, &one); err != nil {
		n.t.Errorf("%s: %v", b, err)
	}
	n.c <- one
	return len(b), nil
}

func (n *notes) next(kind string) Note {
	n.t.Helper()
	for timeout := time.After(20 * time.Second); ; {
		select {
		case one := <-n.c:
			if one.Kind == kind {
				return one
			}
		case <-timeout:
			n.t.Fatalf("no note says %q", kind)
		}
	}
}

// serving starts a server on a free loopback port.
func serving(t *testing.T) (addr string, said *notes) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	said = newNotes(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, addr, time.Hour, NewLog(said, "s")) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	said.next(Listening)
	return addr, said
}

func TestAStreamEndsInPeace(t *testing.T) {
	addr, served := serving(t)
	for _, up := range []Rate{Bulk, 100_000, 0} {
		said := newNotes(t)
		l := Load{Network: "tcp6", To: addr, Flows: 1, Up: up, Down: 1e6, Step: time.Millisecond, Gap: time.Hour, Base: uint64(up), Seed: 5}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx, NewLog(said, "c")) }()
		said.next(Progress)
		stop()
		client, server := said.next(Ended), served.next(Ended)
		if err := <-done; err != nil || client.Err != "" || server.Err != "" {
			t.Errorf("%v; client %+v, server %+v", err, client, server)
		}
		if client.Sent != server.Received || server.Sent != client.Received || client.Received == 0 || client.Flow != server.Flow {
			t.Errorf("client %+v, server %+v", client, server)
		}
	}
}

func TestDatagramsAreAnswered(t *testing.T) {
	addr, _ := serving(t)
	said := newNotes(t)
	l := Load{Network: "udp6", To: addr, Flows: 1, Step: time.Millisecond, Gap: time.Hour, Life: [2]time.Duration{50 * time.Millisecond, 50 * time.Millisecond}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, NewLog(said, "c")) }()
	n := said.next(Ended)
	stop()
	if n.Sent == 0 || n.Received != n.Sent || n.Lost+n.Duplicates+n.Failures > 0 || n.Server != "s" {
		t.Errorf("%+v", n)
	}
	<-done
}

// impostor accepts one connection, reads the hello and does what it likes.
func impostor(t *testing.T, do func(*net.TCPConn, Hello)) (addr string) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		first := make([]byte, helloLen)
		io.ReadFull(c, first)
		h, _ := ParseHello(first)
		do(c.(*net.TCPConn), h)
		c.Close()
	}()
	return l.Addr().String()
}

func TestLiesAreNoticed(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(*net.TCPConn, Hello)
	}{
		{"truncated", errTruncated.Error(), func(c *net.TCPConn, h Hello) {
			b := make([]byte, 1000)
			Down(h.Seed).Fill(b, 0)
			c.Write(b)
			c.CloseWrite()
			io.Copy(io.Discard, c)
		}},
		{"reset", "reset", func(c *net.TCPConn, h Hello) { c.SetLinger(0) }},
		{"a wrong byte", "byte 17", func(c *net.TCPConn, h Hello) {
			b := make([]byte, 1000)
			Down(h.Seed).Fill(b, 0)
			b[17]++
			c.Write(b)
			io.Copy(io.Discard, c)
		}},
		{"an echo", "byte 0", func(c *net.TCPConn, h Hello) { io.Copy(c, c) }},
	} {
		said := newNotes(t)
		l := Load{Network: "tcp6", To: impostor(t, c.do), Flows: 1, Up: 100_000, Down: 1, Step: time.Millisecond, Gap: time.Hour}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx, NewLog(said, "c")) }()
		if n := said.next(Ended); !strings.Contains(n.Err, c.want) {
			t.Errorf("%s: %+v", c.name, n)
		}
		stop()
		<-done
	}
}
