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

// A trio is a client's agent, another one of its site, and the server's.
type trio struct {
	x, spare, y *site
	way         path // between x and y
	client      *net.TCPConn
	server      net.Conn
}

// loseX loses the machine of the client's agent: not a word of it comes any more. One that is stopped says that it gives its sessions
// up, which may or may not get out before its connections end. Before, the server's agent must have heard what another one needs to
// go on with the session: until then nobody could.
func (w *trio) loseX(t *testing.T) {
	t.Helper()
	w.y.mu.Lock()
	p := w.y.peers["x"]
	w.y.mu.Unlock()
	for end := time.Now().Add(within); len(p.trunk.Movable()) == 0; {
		if time.Now().After(end) {
			t.Fatal("y never hears what another agent needs to go on with the session")
		}
	}
	w.way.lose()
	w.x.Close()
}

func newTrio(t *testing.T) *trio {
	n := newNetwork(t)
	w := &trio{}
	w.x, w.spare, w.y = n.agent("x", func(c *Config) { c.Dial = w.way.dial }), n.agent("spare", nil), n.agent("y", nil)
	lane := Lane{Number: 5, Client: clients, Server: servers, Near: []string{"x", "spare"}, Far: []string{"y"}}
	w.y.tell(t, []Peer{w.x.at, w.spare.at}, lane)
	w.x.tell(t, []Peer{w.y.at}, lane)
	w.spare.tell(t, []Peer{w.y.at}, lane)
	w.y.connected(t, "x")
	w.y.connected(t, "spare")
	w.x.connected(t, "y")
	w.spare.connected(t, "y")
	syn, what := w.x.offer(t, 5)
	if what != "accepted" {
		t.Fatalf("the connection was %s", what)
	}
	var err error
	if w.server, err = w.y.ends.server.Accept(); err != nil {
		t.Fatal(err)
	}
	w.client = <-syn.client
	w.client.SetDeadline(time.Now().Add(within))
	w.server.SetDeadline(time.Now().Add(within))
	return w
}

// turned waits until the server's agent has asked another one, and says what came of it.
func (w *trio) turned(t *testing.T) *Turned {
	t.Helper()
	for end := time.After(within); ; {
		select {
		case e := <-w.y.events:
			if e.Turned != nil {
				return e.Turned
			}
		case <-end:
			t.Fatal("nobody was asked to go on with the session")
		}
	}
}

// The agent of a client is lost amid a download: another one of its site goes on with it.
func TestAnotherAgentOfTheSiteGoesOn(t *testing.T) {
	safety.Test(t, safety.Bytes)
	w := newTrio(t)
	go w.server.Write([]byte("the first half"))
	if _, err := io.ReadFull(w.client, make([]byte, 14)); err != nil {
		t.Fatal(err)
	}
	client, own := pipe(t)
	w.spare.ends.mu.Lock()
	w.spare.ends.take = func(m frame.Takeover) (*net.TCPConn, uint64, error) { return own, 14, nil }
	w.spare.ends.mu.Unlock()
	w.loseX(t)
	if got := w.turned(t); got.Err != nil || got.To != "spare" || got.Client != clientName || got.Server != server.String() {
		t.Fatalf("%+v", got)
	}
	go w.server.Write([]byte("and the second"))
	b := make([]byte, 14)
	if _, err := io.ReadFull(client, b); err != nil || string(b) != "and the second" {
		t.Errorf("%q, %v", b, err)
	}
}

var clientName = client.String()

func pipe(t *testing.T) (a, b *net.TCPConn) {
	l := listen(t)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	o, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	a, b = c.(*net.TCPConn), o.(*net.TCPConn)
	a.SetDeadline(time.Now().Add(within))
	return a, b
}

// Where it finds that bytes are nowhere the server is reset, at once: it must not take what it got for all.
func TestASessionThatCannotGoOnIsReset(t *testing.T) {
	safety.Test(t, safety.Bytes)
	w := newTrio(t)
	w.client.Write([]byte("the first half"))
	if _, err := io.ReadFull(w.server, make([]byte, 14)); err != nil {
		t.Fatal(err)
	}
	w.spare.ends.mu.Lock()
	w.spare.ends.take = func(frame.Takeover) (*net.TCPConn, uint64, error) {
		return nil, 0, &trunk.Refused{Reason: frame.CannotGoOn}
	}
	w.spare.ends.mu.Unlock()
	w.loseX(t)
	if got := w.turned(t); got.Err == nil {
		t.Fatalf("%+v", got)
	}
	if n, err := w.server.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the server got %d bytes, %v; want a reset", n, err)
	}
}

// An agent goes on with connections of its own lanes and side alone, for the agent at their other end.
func TestNobodyTakesOverBeyondHisLanes(t *testing.T) {
	safety.Test(t, safety.Door)
	w := newTrio(t)
	good := frame.Takeover{Open: frame.Open{Lane: 5, Client: client, Server: server}, Client: true}
	if why := w.spare.mayTakeOver("y", good); why != 0 {
		t.Fatalf("what is its own was refused: %v", why)
	}
	for name, c := range map[string]struct {
		from   string
		change func(*frame.Takeover)
	}{
		"another client":               {"y", func(m *frame.Takeover) { m.Open.Client = server }},
		"another server":               {"y", func(m *frame.Takeover) { m.Server = client }},
		"the end host of the other":    {"y", func(m *frame.Takeover) { m.Client = false }},
		"one of the lane's same side":  {"x", func(*frame.Takeover) {}},
		"one that is not of the lane":  {"z", func(*frame.Takeover) {}},
		"the other side, by the other": {"x", func(m *frame.Takeover) { m.Client = false }},
	} {
		m := good
		c.change(&m)
		if why := w.spare.mayTakeOver(c.from, m); why != frame.NotMyLane {
			t.Errorf("%s: %v, want that it is not its lane", name, why)
		}
	}
	other := Lane{Number: 6, Client: clients, Server: servers, Slot: 1, Bits: 3, Near: []string{"spare"}, Far: []string{"y"}} // the client's port ends in 0
	w.spare.tell(t, []Peer{w.y.at}, other)
	if why := w.spare.mayTakeOver("y", good); why != 0 {
		t.Errorf("another slot of its own entry was refused: %v", why)
	}
	w.spare.Drain(true)
	if why := w.spare.mayTakeOver("y", good); why != frame.Draining {
		t.Errorf("it drains: %v", why)
	}
	if n := w.spare.ends.dialed; n != 0 {
		t.Errorf("it was at %d end hosts", n)
	}
}

// Who is asked for many sessions already is asked for one more once he has answered.
func TestNobodyIsAskedForMoreThanHeTakesAtATime(t *testing.T) {
	w := newTrio(t)
	w.y.mu.Lock()
	lost, spare := w.y.peers["x"], w.y.peers["spare"]
	w.y.mu.Unlock()
	var s *trunk.Session
	for end := time.Now().Add(within); s == nil; {
		if all := lost.trunk.Movable(); len(all) == 1 {
			s = all[0]
		} else if time.Now().After(end) {
			t.Fatal("no session can be moved")
		}
	}
	spare.asked.Store(trunk.AsksAtOnce)
	if to := lost.spare(s, nil); to != nil {
		t.Errorf("%s is asked for one more", to.name)
	}
	spare.asked.Store(trunk.AsksAtOnce - 1)
	if to := lost.spare(s, nil); to != spare {
		t.Errorf("with room for one %+v is asked, not spare", to)
	}
}
