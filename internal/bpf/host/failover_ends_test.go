package host_test

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// begin starts a connection whose first server has sent part of the answer; the client has read that.
func (s *stage) begin(write, read int64) (*connection, *nstest.Proc, *host.Stream) {
	p := s.serve(write, read)
	c := s.connect()
	down := host.NewStream(host.Down, 0)
	must(s.t, down.Check(c, write))
	return c, p, down
}

// A daemon that does not read cannot lead a connection elsewhere: then the end of its server is an error, at once.
func TestWithoutADaemonADeathIsAReset(t *testing.T) {
	s := newStage(t, nil)
	for _, unread := range []bool{false, true} {
		c, p, _ := s.begin(1000, 0)
		if unread {
			_, err := c.Write(make([]byte, 1000))
			must(t, err)
			s.at(s.ends, s.served(c), "unread", func(k *kick.Socket) bool { return k.Unread() == 1000 })
		}
		p.Kill()
		if n, err := io.Copy(io.Discard, c); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("unread bytes %v: %d more bytes, then %v; want a reset", unread, n, err)
		}
	}
}

// Where the policy is reset, so it is, also when the kernel has bytes that the dead process never read.
func TestUnreadBytesAtADeathAreAReset(t *testing.T) {
	safety.Test(t, safety.Bytes)
	s := newStage(t, nil)
	s.hear()
	must(t, s.first.Edge().SetService(host.WebTCP.Service, host.Policy{}))
	c, p, _ := s.begin(1000, 0)
	_, err := c.Write(make([]byte, 1000))
	must(t, err)
	s.at(s.ends, s.served(c), "unread", func(k *kick.Socket) bool { return k.Unread() == 1000 })
	p.Kill()
	if n, err := io.Copy(io.Discard, c); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d more bytes, then %v; want a reset", n, err)
	}
}

// A process that is started again on the same host goes on there; the old socket is in the way until it is reset.
func TestAConnectionGoesOnAtTheSameHost(t *testing.T) {
	s := newStage(t, nil)
	s.hear()
	c, p, down := s.begin(1000, 0)
	p.Kill()
	nstest.Receive(t, "the death of the process", s.died)
	_, err := s.ends.Reset(kick.SetOf(s.served(c)))
	must(t, err)
	c.upload(0, upLen)
	done, _ := s.goOn(c, s.first)
	rest := receive(c, down, 1000)
	if err := errors.Join((<-rest).err, <-c.wrote, <-done); err != nil {
		t.Fatal(err)
	}
}

// Where nobody listens any more the client hears of it at once.
func TestNobodyAdoptsWhereNobodyListens(t *testing.T) {
	s := newStage(t, nil)
	s.hear()
	c, p, _ := s.begin(1000, 0)
	p.Kill()
	nstest.Receive(t, "the death of the process", s.died)
	state, window := s.carry(c, s.second)
	s.client.Do(func() { must(t, s.client.Edge().Nudge(c.tuple, state, window)) })
	if n, err := io.Copy(io.Discard, c); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d more bytes, then %v; want a reset", n, err)
	}
}

// A connection that the dead process had not accepted yet goes on as well: its kernel answers for no socket, or
// for one that no program holds.
func TestAConnectionThatWasNotAcceptedGoesOn(t *testing.T) {
	s := newStage(t, nil)
	s.hear()
	p := s.serve(-1, 0)
	c := s.connect()
	_, err := io.CopyN(c, host.NewStream(host.Up, 0), 1000)
	must(t, err)
	s.at(s.ends, s.served(c), "unread", func(k *kick.Socket) bool { return k.Unread() == 1000 })
	p.Kill()
	nstest.Receive(t, "the death of the process", s.died)
	c.upload(1000, upLen)
	done, _ := s.goOn(c, s.second)
	rest := receive(c, host.NewStream(host.Down, 0), 0)
	if err := errors.Join((<-rest).err, <-c.wrote, <-done); err != nil {
		t.Fatal(err)
	}
}

// A client that has said all it has to say, to nobody, says it to the new server.
func TestAFINIsSaidAgain(t *testing.T) {
	s := newStage(t, nil)
	s.hear()
	c, p, down := s.begin(1000, upLen)
	s.network.Cut(t, s.first)
	host.Roomy(c.TCPConn)
	c.upload(0, upLen)
	s.at(s.kicks, kickTuple(c.tuple), "closing", func(k *kick.Socket) bool { return k.State == kick.FinWait1 })
	p.Kill()
	done, _ := s.goOn(c, s.second)
	rest := receive(c, down, 1000)
	if err := errors.Join((<-rest).err, <-c.wrote, <-done); err != nil {
		t.Fatal(err)
	}
}

// Where the daemon's acknowledgement is lost, what the client's kernel sends again begins the connection.
func TestWithoutANudgeARetransmissionBegins(t *testing.T) {
	s := newStage(t, nil)
	s.hear()
	c, p, down := s.begin(1000, upLen)
	s.network.Cut(t, s.first)
	c.upload(0, upLen)
	s.at(s.kicks, kickTuple(c.tuple), "sending", func(k *kick.Socket) bool { return k.InFlight() > 0 })
	p.Kill()
	l := s.listen(s.second, c.tuple.Remote.String())
	state, _ := s.carry(c, s.second)
	done := make(chan error, 1)
	go func() { done <- finish(l, state) }()
	_, err := s.kicks.Kick(kick.SetOf(kickTuple(c.tuple)))
	must(t, err)
	rest := receive(c, down, 1000)
	if err := errors.Join((<-rest).err, <-c.wrote, <-done); err != nil {
		t.Fatal(err)
	}
}
