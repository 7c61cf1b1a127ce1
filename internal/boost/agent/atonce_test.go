package agent

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// atOnceOf are x, near, and as many far agents as have names, in a lane, 5, whose clients are accepted at once.
func atOnceOf(t *testing.T, names ...string) (x *site, far map[string]*site) {
	n := newNetwork(t)
	lane := Lane{Number: 5, Client: clients, Server: servers, Near: []string{"x"}, Far: names, AtOnce: true}
	x, far = n.agent("x", nil), map[string]*site{}
	var peers []Peer
	for _, name := range names {
		far[name] = n.agent(name, nil)
		far[name].tell(t, []Peer{x.at}, lane)
		peers = append(peers, far[name].at)
	}
	x.tell(t, peers, lane)
	for _, name := range names {
		x.connected(t, name)
	}
	return x, far
}

// hold has connections to servers wait for a word of the test: nil, and they are made.
func (f *fakeEnds) hold() chan error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.goOn = make(chan error, 10)
	return f.goOn
}

func (s *site) isDecided(t *testing.T, lane uint64, want string) *net.TCPConn {
	t.Helper()
	syn, what := s.offer(t, lane)
	if what != want {
		t.Fatalf("the connection was %s, not %s", what, want)
	}
	if what != "accepted" {
		return nil
	}
	c := <-syn.client
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(within))
	return c
}

// isReset waits for the end of a connection, which is to be none of a whole stream, before a single byte.
func isReset(t *testing.T, c *net.TCPConn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		t.Errorf("the client got %d bytes, %v, and no reset", n, err)
	}
}

// The client's handshake is over before the far agent has connected to the server, and what it says is there by then.
func TestAClientIsAcceptedAtOnce(t *testing.T) {
	safety.Test(t, safety.Bytes)
	x, far := atOnceOf(t, "y")
	y := far["y"]
	goOn := y.ends.hold()
	c := x.isDecided(t, 5, "accepted")
	if _, err := io.WriteString(c, "all that goes"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(within); x.Trunks()["y"].Counts.First != 13; {
		if time.Now().After(end) {
			t.Fatalf("nothing is on its way: %+v", x.Trunks()["y"])
		}
	}
	goOn <- nil
	there, err := y.ends.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go func() { io.Copy(there, there); there.Close() }()
	io.WriteString(c, " there and back")
	c.CloseWrite()
	if b, err := io.ReadAll(c); err != nil || string(b) != "all that goes there and back" {
		t.Errorf("%q came back, %v", b, err)
	}
}

// Where the agent is told to drain amid the handshake of a client, that one is carried still: it cannot pass any more.
func TestADrainDoesNotResetWhoIsBeingAccepted(t *testing.T) {
	x, far := atOnceOf(t, "y")
	syn := newSYN(t, 5)
	syn.amid = func() { x.Drain(true) }
	x.ends.syns <- syn
	c := <-syn.client
	defer c.Close()
	there, err := far["y"].ends.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go func() { io.Copy(there, there); there.Close() }()
	io.WriteString(c, "there and back")
	c.CloseWrite()
	c.SetDeadline(time.Now().Add(within))
	if b, err := io.ReadAll(c); err != nil || string(b) != "there and back" {
		t.Errorf("%q came back, %v", b, err)
	}
	if _, what := x.offer(t, 5); what != "passed" {
		t.Errorf("the next client was %s, while the agent drains", what)
	}
}

// A server that does not want the connection, or is silent, is heard late, and never as the end of a stream.
func TestAServersNoComesLateAndIsAReset(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for what, no := range map[string]error{"refused": &trunk.Refused{Reason: frame.RefusedByHost}, "silent": errors.New("no answer")} {
		t.Run(what, func(t *testing.T) {
			x, far := atOnceOf(t, "y", "z")
			goOn := far["y"].ends.hold()
			c := x.isDecided(t, 5, "accepted")
			io.WriteString(c, "hello")
			goOn <- no
			isReset(t, c)
			if far["z"].ends.dialed > 0 {
				t.Error("another agent has asked the server again")
			}
			if x.atOnce(5) == nil {
				t.Error("a server's no has the next client wait")
			}
		})
	}
}

// The near agent waits no longer than it would: then the client is reset.
func TestASilentServerIsNotWaitedForForEver(t *testing.T) {
	n := newNetwork(t)
	x, y := n.agent("x", func(c *Config) { c.Patience = 100 * time.Millisecond }), n.agent("y", nil)
	lane := Lane{Number: 5, Client: clients, Server: servers, Near: []string{"x"}, Far: []string{"y"}, AtOnce: true}
	y.tell(t, []Peer{x.at}, lane)
	x.tell(t, []Peer{y.at}, lane)
	x.connected(t, "y")
	y.ends.hold()
	c := x.isDecided(t, 5, "accepted")
	io.WriteString(c, "hello")
	isReset(t, c)
}

// A far agent that cannot leaves the client, with what it has said, to the next one. After that clients wait for its answer,
// if there is nobody else, until it can again.
func TestTheNextAgentOfTheLaneGetsWhatTheClientHasSaid(t *testing.T) {
	safety.Test(t, safety.Bytes)
	x, far := atOnceOf(t, "y", "z")
	far["y"].Drain(true)
	c := x.isDecided(t, 5, "accepted")
	io.WriteString(c, "hello")
	c.CloseWrite()
	there, err := far["z"].ends.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if b, err := io.ReadAll(there); err != nil || string(b) != "hello" {
		t.Errorf("the server got %q, %v", b, err)
	}
	far["z"].Drain(true)
	isReset(t, x.isDecided(t, 5, "accepted")) // nobody knew
	x.isDecided(t, 5, "passed")
	far["z"].Drain(false)
	x.isDecided(t, 5, "accepted") // it was asked
	if x.atOnce(5) == nil {
		t.Error("an agent that can again has the next client wait")
	}
}

// Where nobody can be asked clients are not accepted.
func TestWithoutAnotherAgentNobodyIsAcceptedAtOnce(t *testing.T) {
	x, far := atOnceOf(t, "y")
	if x.atOnce(6) != nil {
		t.Error("a connection of no lane is accepted")
	}
	x.Drain(true)
	x.isDecided(t, 5, "passed")
	x.Drain(false)
	far["y"].Close()
	for end := time.Now().Add(within); x.atOnce(5) != nil; {
		if time.Now().After(end) {
			t.Fatal("the far agent has ended, and clients are accepted")
		}
	}
	x.isDecided(t, 5, "passed")
}

// An agent that ends resets whom it has accepted.
func TestAnAgentThatEndsResetsWhomItHasAccepted(t *testing.T) {
	safety.Test(t, safety.Bytes)
	x, far := atOnceOf(t, "y")
	far["y"].ends.hold()
	c := x.isDecided(t, 5, "accepted")
	io.WriteString(c, "hello")
	x.Close()
	isReset(t, c)
}
