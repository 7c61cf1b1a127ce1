package e2e

import (
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// TestFlowsSurviveMoves takes the client, the server and both from one router to another, under streams and
// datagrams, over a fast network, over a slow and lossy one, and over one that doubles packets and lets others pass them.
func TestFlowsSurviveMoves(t *testing.T) {
	safety.Test(t, safety.Bytes)
	middles := []string{"delay 0s loss 0%", "delay 10ms loss 1%"}
	if plane := os.Getenv("SCAFFOLD_PLANE"); plane == "" || nstest.Long() { // what is doubled meets hosts alone
		middles = append(middles, "delay 2ms loss 0% duplicate 30% reorder 30%")
	}
	for i, middle := range middles {
		m := theMobile(t)
		m.middle(middle)
		talks := m.talks(100 + 10*i)
		for _, step := range []struct {
			what string
			do   func()
		}{
			{"make before break of the client", func() { m.hop("c1", "gap 100ms first") }},
			{"make before break of the server", func() { m.hop("s2", "gap 100ms first") }},
			{"a hard break of the client", func() { m.hop("c1", "gap 300ms") }},
			{"a hard break of the server", func() { m.hop("s2", "gap 300ms") }},
			{"a hard break of 1 s", func() { m.hop("c1", "gap 1s") }},
			{"both at once", func() { m.both("gap 50ms") }},
			{"both at once, without a gap", func() { m.both("") }},
			{"a chain of moves", func() { m.hop("c1", ""); m.hop("c1", ""); m.hop("c1", "") }},
			{"a way that swallowed everything", func() {
				m.middle("loss 100%")
				time.Sleep(time.Second) // timers have doubled twice
				m.middle(middle)
			}},
			{"a link that was down", func() {
				m.do("unplug c1 " + moving.at["c1"])
				time.Sleep(200 * time.Millisecond)
				m.do("heal c1 " + moving.at["c1"])
			}},
		} {
			step.do()
			m.goOn(step.what+" ("+middle+")", talks...)
		}
	}
	theMobile(t).middle("delay 0s loss 0% duplicate 0% reorder 0%")
}

func (m *mobile) both(how string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.hop("s2", how)
	}()
	m.hop("c1", how)
	<-done
}

// TestDaemonsDieWhileTheirFlowsMove: the flows go on, whoever it was and when.
func TestDaemonsDieWhileTheirFlowsMove(t *testing.T) {
	m := theMobile(t)
	talks := m.talks(200)
	for _, wait := range []time.Duration{0, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		for _, host := range []string{"c1", "s1"} {
			var moved sync.WaitGroup
			moved.Go(func() { m.hop("c1", "") })
			time.Sleep(wait)
			m.do("kill " + host + "/hostd")
			m.do("start " + host + "/hostd")
			moved.Wait()
			m.goOn("the death of the daemon of "+host+" "+wait.String()+" into a move", talks...)
		}
	}
}

// TestAMoveDuringConnectAndDuringClose: neither is lost.
func TestAMoveDuringConnectAndDuringClose(t *testing.T) {
	m := theMobile(t)
	m.middle("delay 20ms loss 0%")
	defer m.middle("delay 0s loss 0%")
	l := m.at("s2").Listen(t, "tcp6", port(m.addr, 300))
	m.serving("move", "tcp", 300, 1)
	const size = 200000
	go accept(l, func(c net.Conn) { io.Copy(c, c) })
	for round := range 6 {
		var moved sync.WaitGroup
		if round < 4 {
			moved.Go(func() {
				time.Sleep(time.Duration(1+round) * 8 * time.Millisecond) // the handshake takes 40
				m.hop("c1", "")
			})
		}
		c := m.dial("c1", "tcp6", port(m.addr, 300))
		if round >= 4 {
			moved.Go(func() { m.hop("s2", "") })
		}
		c.SetDeadline(time.Now().Add(answerTime))
		go func() {
			c.Write(make([]byte, size))
			c.(*net.TCPConn).CloseWrite()
		}()
		if n, err := io.Copy(io.Discard, c); n != size || err != nil {
			t.Errorf("round %d: %d of %d bytes, %v\nlook at: %s", round, n, size, err, m.look())
		}
		moved.Wait()
	}
}
