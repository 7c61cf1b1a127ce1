package ends

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// TestAnAgentThatIsNotHeardIsPassed: new connections go on, and the one that it carries goes on, too.
func TestAnAgentThatIsNotHeardIsPassed(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.echo(t, of.at(80))
		carried, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(carried, "before"))
		n.do(t, "stop")
		n.untilPassed(t, of)
		must(t, talk(carried, "meanwhile"))
		n.do(t, "go")
		nstest.Wait(t, "the agent's heartbeat", func() error {
			c, err := n.client.Dial("tcp", of.at(80))
			must(t, err, talk(c, "again"), finish(c))
			if !strings.Contains(n.agent.Output(), "joined "+c.LocalAddr().String()) {
				return errors.New("a connection is not boosted")
			}
			return nil
		})
		must(t, finish(carried))
	})
}

// untilPassed makes connections until one goes on unboosted: the last beat may be young.
func (n *network) untilPassed(t *testing.T, of family) {
	t.Helper()
	nstest.Wait(t, "the agent:\n"+n.agent.Output(), func() error {
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "hello"), finish(c))
		if strings.Contains(n.agent.Output(), c.LocalAddr().String()) {
			return errors.New("connections are boosted still")
		}
		return nil
	})
}

// TestAStoppedAgentIsPassed: a SYN that it holds goes on when it is sent again.
func TestAStoppedAgentIsPassed(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything(), Answer: "hold"})
		n.echo(t, of.at(80))
		done := make(chan error, 1)
		go func() {
			c, err := n.client.Dial("tcp", of.at(80))
			if err == nil {
				err = errors.Join(talk(c, "late"), finish(c))
			}
			done <- err
		}()
		n.agent.WaitFor(t, "syn ")
		n.agent.Signal(syscall.SIGSTOP)
		must(t, nstest.Receive(t, "tcpdump in the server's namespace", done))
		n.agent.Signal(syscall.SIGCONT)
		if all := n.counters(t); all["passed_agent_away"] == 0 {
			t.Errorf("counters %v", all)
		}
	})
}

// TestASYNWithoutDecisionPasses after the limit, which the agent has, as the kernel has it for one that stands still.
func TestASYNWithoutDecisionPasses(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything(), Answer: "hold", Config: Config{Hold: 50 * time.Millisecond}})
		n.echo(t, of.at(80))
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "hello"), finish(c))
		if all := n.counters(t); all["passed"] != 1 || all["accepted"] != 0 {
			t.Errorf("counters %v", all)
		}
	})
}

func TestAnAgentLetsPass(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything(), Answer: "pass"})
		n.echo(t, of.at(80))
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "hello"), finish(c))
		n.agent.WaitFor(t, "passed <nil>")
	})
}

// TestWhatExceedsTheLimitPasses: with room for two SYNs of an agent that decides about none.
func TestWhatExceedsTheLimitPasses(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything(), Answer: "hold", Config: Config{Held: 2}})
		n.echo(t, of.at(80))
		for range 2 {
			go n.dialWithin(t.Context(), of.at(80)) // held for the rest of the test
		}
		nstest.Wait(t, n.agent.Output(), func() error {
			if n.counters(t)["held"] < 2 {
				return errors.New("two SYNs are not held yet")
			}
			return nil
		})
		for range 5 {
			c, err := n.client.Dial("tcp", of.at(80))
			must(t, err, talk(c, "beyond"), finish(c))
		}
		if all := n.counters(t); all["held"] != 2 || all["passed_held_limit"] != 5 {
			t.Errorf("counters %v", all)
		}
	})
}

// TestAKilledAgentCutsNothingShort: amid transfers in both directions both ends see a reset, and never an end.
func TestAKilledAgentCutsNothingShort(t *testing.T) {
	safety.Test(t, safety.Bytes)
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		l := n.server.Listen(t, "tcp", of.at(80))
		for range 5 {
			var ended []chan error
			connect := func() (c, s net.Conn) {
				c, err := n.client.Dial("tcp", of.at(80))
				must(t, err)
				s, err = l.Accept()
				must(t, err)
				return c, s
			}
			for range 3 {
				c, s := connect()
				ended = append(ended, read(c), write(s))
				c, s = connect()
				ended = append(ended, write(c), read(s))
			}
			c, s := connect()
			must(t, talkBetween(c, s))
			ended = append(ended, read(c), read(s))
			n.agent.Kill()
			for _, e := range ended {
				if err := nstest.Receive(t, "tcpdump at both ends", e); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("an end saw %v, expected a reset", err)
				}
			}
			n.start(t, agentConfig{Lanes: everything()})
		}
		n.echo(t, of.at(81))
		c, err := n.client.Dial("tcp", of.at(81))
		must(t, err, talk(c, "the next agent"), finish(c))
		n.agent.WaitFor(t, "joined "+c.LocalAddr().String())
	})
}

// write writes until the connection ends, and reads nothing: who reads would be told of a reset instead.
func write(c net.Conn) chan error {
	ended := make(chan error, 1)
	go func() {
		b := make([]byte, 1<<16)
		for {
			if _, err := c.Write(b); err != nil {
				c.Close()
				ended <- err
				return
			}
		}
	}()
	return ended
}

// read tells how the connection ended; nil is a clean end.
func read(c net.Conn) chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, c)
		c.Close()
		ended <- err
	}()
	return ended
}

func talkBetween(a, b net.Conn) error {
	if _, err := io.WriteString(a, "hello"); err != nil {
		return err
	}
	got := make([]byte, 5)
	_, err := io.ReadFull(b, got)
	return err
}

// TestAKilledAgentIsPassed, and nothing of it hinders.
func TestAKilledAgentIsPassed(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.echo(t, of.at(80))
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "hello"), finish(c))
		n.agent.Kill()
		n.untilPassed(t, of)
	})
}
