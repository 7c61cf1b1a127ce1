package ends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// Fifty connections between the same two hosts, at once, and each has its own bytes.
func TestFiftyConnectionsBetweenTheSameHosts(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.echo(t, of.at(80))
		const count = 50
		conns, errs := make([]net.Conn, count), make(chan error, count)
		for i := range count {
			var err error
			if conns[i], err = n.client.Dial("tcp", of.at(80)); err != nil {
				t.Fatalf("connection %d: %v\n%s", i, err, n.agent.Output())
			}
		}
		for i, c := range conns {
			go func() { errs <- errors.Join(talk(c, strings.Repeat(fmt.Sprint("connection ", i), 5000)), finish(c)) }()
		}
		for range count {
			must(t, nstest.Receive(t, n.agent.Output(), errs))
		}
		if got := n.counters(t); got["accepted"] != count || got["reset_unfinished"] != 0 {
			t.Errorf("accepted %d, resets %d of %d that ended well: %v", got["accepted"], got["reset_unfinished"], count, got)
		}
	})
}

func TestRefusedStaysRefused(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		if _, err := n.client.Dial("tcp", of.at(81)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v, expected that it is refused\n%s", err, n.agent.Output())
		}
		n.agent.WaitFor(t, "refused <nil>")
	})
}

// TestAnAgentRefuses in the server's name, although the server would take the connection.
func TestAnAgentRefuses(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything(), Answer: "refuse"})
		n.echo(t, of.at(80))
		if _, err := n.client.Dial("tcp", of.at(80)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v, expected that it is refused\n%s", err, n.agent.Output())
		}
	})
}

// dialFor is Dial that gives up, so that a test of silence ends.
func (n *network) dialFor(d time.Duration, address string) (c net.Conn, err error) {
	ctx, end := context.WithTimeout(context.Background(), d)
	defer end()
	return n.dialWithin(ctx, address)
}

func (n *network) dialWithin(ctx context.Context, address string) (c net.Conn, err error) {
	n.client.Do(func() { c, err = (&net.Dialer{}).DialContext(ctx, "tcp", address) })
	return c, err
}

// TestSilenceStaysSilence: a server that says nothing, and one that begins to: the client's next SYN finds it.
func TestSilenceStaysSilence(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything(), Patience: 300 * time.Millisecond})
		n.echo(t, of.at(80))
		n.server.Down(t, "eth0")
		n.silence(t, of)
		done := make(chan error, 1)
		go func() {
			c, err := n.client.Dial("tcp", of.at(80))
			if err == nil {
				err = errors.Join(talk(c, "late"), finish(c))
			}
			done <- err
		}()
		n.agent.WaitFor(t, "dropped <nil>")
		n.revive(t, of)
		must(t, nstest.Receive(t, "the agent:\n"+n.agent.Output(), done))
	})
}

func (n *network) silence(t *testing.T, of family) {
	t.Helper()
	c, err := n.dialFor(1500*time.Millisecond, of.at(80))
	var timeout net.Error
	if err == nil {
		c.Close()
	}
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("%v, expected that nobody answers\n%s", err, n.agent.Output())
	}
	n.agent.WaitFor(t, "no answer")
}

// revive gives the server what went with its interface.
func (n *network) revive(t *testing.T, of family) {
	t.Helper()
	n.server.Up(t, "eth0")
	if of.name == "IPv6" {
		n.server.Addr(t, "eth0", "fd02::2/64")
		n.server.Route(t, "::/0", "fd02::1", "eth0")
	} else {
		n.server.Route(t, "0.0.0.0/0", "10.2.0.1", "eth0")
	}
}

// TestAnOlderConnectionIsUndisturbed, while new ones between the same hosts are boosted.
func TestAnOlderConnectionIsUndisturbed(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{})
		n.echo(t, of.at(80))
		older, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(older, "before"))
		n.lanes(t, everything()...)
		must(t, talk(older, "after"))
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "boosted"), talk(older, "beside"), finish(c))
		n.agent.WaitFor(t, "joined "+c.LocalAddr().String())
		n.lanes(t)
		must(t, talk(older, "without"), finish(older))
		if out := n.agent.Output(); strings.Contains(out, older.LocalAddr().String()) {
			t.Errorf("the agent was told of %v:\n%s", older.LocalAddr(), out)
		}
	})
}

// TestALiveConnectionOutlivesItsLane, in both directions.
func TestALiveConnectionOutlivesItsLane(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.echo(t, of.at(80))
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "boosted"))
		n.lanes(t)
		must(t, talk(c, "still"))
		next, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(next, "not boosted"), finish(next), finish(c))
		if all := n.counters(t); all["held"] != 1 {
			t.Errorf("one of two connections was in a lane: %v", all)
		}
	})
}

// TestHalvesEndByThemselves: either end may say no more, and go on to listen.
func TestHalvesEndByThemselves(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		l := n.server.Listen(t, "tcp", of.at(80))
		for _, clientFirst := range []bool{true, false} {
			c, err := n.client.Dial("tcp", of.at(80))
			must(t, err)
			s, err := l.Accept()
			must(t, err)
			first, second := c, s
			if !clientFirst {
				first, second = s, c
			}
			must(t, first.(*net.TCPConn).CloseWrite())
			if b, err := io.ReadAll(second); err != nil || len(b) > 0 {
				t.Errorf("client first: %v: %q, %v", clientFirst, b, err)
			}
			_, err = io.WriteString(second, "more")
			must(t, err, second.(*net.TCPConn).CloseWrite())
			if b, err := io.ReadAll(first); err != nil || string(b) != "more" {
				t.Errorf("client first: %v: %q, %v", clientFirst, b, err)
			}
			c.Close()
			s.Close()
		}
	})
}

// TestAResetArrives at the other end, in both directions.
func TestAResetArrives(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		l := n.server.Listen(t, "tcp", of.at(80))
		for _, byClient := range []bool{true, false} {
			c, err := n.client.Dial("tcp", of.at(80))
			must(t, err)
			s, err := l.Accept()
			must(t, err)
			who, other := c, s
			if !byClient {
				who, other = s, c
			}
			n.agent.WaitFor(t, "joined "+c.LocalAddr().String())
			reset(who.(*net.TCPConn))
			if _, err := io.ReadAll(other); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("by the client: %v: %v, expected a reset", byClient, err)
			}
			other.Close()
		}
		nstest.Wait(t, "ss -tan in the router's namespace", func() error {
			n.do(t, "sweep")
			n.do(t, "sessions")
			if out := n.agent.Output(); !strings.HasPrefix(out[strings.LastIndex(out, "sessions "):], "sessions 0\n") {
				return errors.New("sessions without sockets are left")
			}
			return nil
		})
	})
}
