package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/keeper"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// within is how long a test waits for what has to happen.
const within = 30 * time.Second

var (
	clients = netip.MustParsePrefix("192.0.2.0/25")
	servers = netip.MustParsePrefix("192.0.2.128/25")
	client  = netip.MustParseAddrPort("192.0.2.1:40000")
	server  = netip.MustParseAddrPort("192.0.2.200:80")
)

// A site is an agent whose ends are pipes on loopback.
type site struct {
	*Agent
	ends   *fakeEnds
	events chan Event
	at     Peer
}

// fakeEnds hands out first packets that a test makes, and connects to a listener in the place of any server.
type fakeEnds struct {
	syns   chan SYN
	server net.Listener
	mu     sync.Mutex
	held   []*Lane
	dialed int
	err    error      // in the place of a connection
	goOn   chan error // what each waits for, and that is in its place; nil: for nothing
	full   error      // of the kernel, which takes no more lanes
	take   func(frame.Takeover) (*net.TCPConn, uint64, error)
}

func (f *fakeEnds) Next(ctx context.Context) (SYN, error) {
	select {
	case s := <-f.syns:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fakeEnds) Dial(ctx context.Context, _, _ netip.AddrPort) (*net.TCPConn, frame.Options, frame.Options, error) {
	f.mu.Lock()
	f.dialed++
	err, goOn := f.err, f.goOn
	f.mu.Unlock()
	if goOn != nil {
		select {
		case err = <-goOn:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return nil, frame.Options{}, frame.Options{}, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", f.server.Addr().String())
	if err != nil {
		return nil, frame.Options{}, frame.Options{}, err
	}
	return c.(*net.TCPConn), frame.Options{MSS: 1400}, frame.Options{}, nil
}

func (f *fakeEnds) TakeOver(ctx context.Context, m frame.Takeover) (*net.TCPConn, uint64, error) {
	f.mu.Lock()
	f.dialed++
	take := f.take
	f.mu.Unlock()
	if take == nil {
		return nil, 0, &trunk.Refused{Reason: frame.Silence}
	}
	return take(m)
}

func (f *fakeEnds) Finished(*net.TCPConn) {}

func (f *fakeEnds) SetLanes(l []*Lane) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full == nil {
		f.held = l
	}
	return f.full
}

// A fakeSYN is decided about once.
type fakeSYN struct {
	t       *testing.T
	lane    uint64
	client  chan *net.TCPConn
	decided chan string
	amid    func() // its handshake; nil: nothing happens
}

func newSYN(t *testing.T, lane uint64) *fakeSYN {
	return &fakeSYN{t: t, lane: lane, client: make(chan *net.TCPConn, 1), decided: make(chan string, 2)}
}

func (s *fakeSYN) Lane() uint64           { return s.lane }
func (s *fakeSYN) Client() netip.AddrPort { return client }
func (s *fakeSYN) Server() netip.AddrPort { return server }
func (s *fakeSYN) Options() frame.Options { return frame.Options{MSS: 1460} }
func (s *fakeSYN) Refuse() error          { s.decided <- "refused"; return nil }
func (s *fakeSYN) Drop() error            { s.decided <- "dropped"; return nil }
func (s *fakeSYN) Pass() error            { s.decided <- "passed"; return nil }

func (s *fakeSYN) Accept(context.Context) (*net.TCPConn, frame.Options, error) {
	l := listen(s.t)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, frame.Options{}, err
	}
	agent, err := l.Accept()
	if err != nil {
		return nil, frame.Options{}, err
	}
	if s.amid != nil {
		s.amid()
	}
	s.client <- c.(*net.TCPConn)
	s.decided <- "accepted"
	return agent.(*net.TCPConn), frame.Options{MSS: 1460}, nil
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// A network gives its agents certificates.
type network struct {
	t    *testing.T
	ca   *x509.Certificate
	key  ed25519.PrivateKey
	pool *x509.CertPool
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t, pool: x509.NewCertPool()}
	public, key, _ := ed25519.GenerateKey(rand.Reader)
	in := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, in, in, public, key)
	if err != nil {
		t.Fatal(err)
	}
	n.ca, _ = x509.ParseCertificate(raw)
	n.key = key
	n.pool.AddCert(n.ca)
	return n
}

func (n *network) certificate(name string) tls.Certificate {
	public, key, _ := ed25519.GenerateKey(rand.Reader)
	in := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, in, n.ca, public, n.key)
	if err != nil {
		n.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func (n *network) agent(name string, change func(*Config)) *site {
	n.t.Helper()
	s := &site{ends: &fakeEnds{syns: make(chan SYN), server: listen(n.t)}, events: make(chan Event, 1000)}
	l := listen(n.t)
	s.at = Peer{Name: name, Door: netip.MustParseAddrPort(l.Addr().String())}
	cert := n.certificate(name)
	c := Config{
		Name: name, Incarnation: uint64(time.Now().UnixNano()), Protection: frame.Sealed, Strategy: "pull", Connections: 2,
		Memory: 4 * stripe.MaxChunk, Silence: within, Patience: within, Ends: s.ends, Doors: []net.Listener{l}, Addresses: []Address{{At: s.at.Door}},
		Server: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: n.pool},
		Client: func(to string, _ int) *tls.Config {
			return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: n.pool, ServerName: to}
		},
		Identity: func(c tls.ConnectionState) (string, error) { return c.PeerCertificates[0].Subject.CommonName, nil },
		Dial: func(ctx context.Context, _ netip.Addr, to netip.AddrPort) (*net.TCPConn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", to.String())
			if err != nil {
				return nil, err
			}
			return c.(*net.TCPConn), nil
		},
		Report: func(e Event) { s.events <- e },
	}
	if change != nil {
		change(&c)
	}
	var err error
	if s.Agent, err = Start(c); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(s.Close)
	return s
}

func (s *site) tell(t *testing.T, peers []Peer, lanes ...Lane) {
	t.Helper()
	if err := s.Tell(peers, lanes); err != nil {
		t.Fatal(err)
	}
}

// connected waits until the trunk to a peer has a connection.
func (s *site) connected(t *testing.T, name string) {
	t.Helper()
	end := time.Now().Add(within)
	for {
		s.mu.Lock()
		n := s.peers[name].trunk.Connections()
		s.mu.Unlock()
		if n > 0 {
			return
		}
		select {
		case e := <-s.events:
			t.Logf("%s: %+v", s.Name, e)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("no connection of the trunk from %s to %s", s.Name, name)
		}
	}
}

// twoAgents are two agents, of which x is near and y is far in lane 5.
func twoAgents(t *testing.T, change func(*Config)) (x, y *site) {
	n := newNetwork(t)
	x, y = n.agent("x", change), n.agent("y", change)
	lane := Lane{Number: 5, Client: clients, Server: servers, Port: 80, Near: []string{"x"}, Far: []string{"y"}}
	y.tell(t, []Peer{x.at}, lane)
	x.tell(t, []Peer{y.at}, lane)
	x.connected(t, "y")
	return x, y
}

// offer gives an agent a first packet, and returns what becomes of it.
func (s *site) offer(t *testing.T, lane uint64) (*fakeSYN, string) {
	t.Helper()
	syn := newSYN(t, lane)
	s.ends.syns <- syn
	select {
	case what := <-syn.decided:
		return syn, what
	case <-time.After(within):
		t.Fatal("nobody decides about a first packet")
		return nil, ""
	}
}

func TestAConnectionGoesOverTwoAgents(t *testing.T) {
	x, y := twoAgents(t, nil)
	if len(x.ends.held) != 1 || len(y.ends.held) != 0 {
		t.Errorf("the near agent holds %d lanes, the far one %d; want 1 and 0", len(x.ends.held), len(y.ends.held))
	}
	syn, what := x.offer(t, 5)
	if what != "accepted" {
		t.Fatalf("the connection was %s", what)
	}
	there, err := y.ends.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := <-syn.client
	c.SetDeadline(time.Now().Add(within))
	go func() { io.Copy(there, there); there.Close() }()
	c.Write([]byte("all that goes there and back"))
	c.CloseWrite()
	if b, err := io.ReadAll(c); err != nil || string(b) != "all that goes there and back" {
		t.Errorf("%q came back, %v", b, err)
	}
	c.Close()
}

func TestWhatTheServerSaysTheClientHears(t *testing.T) {
	x, y := twoAgents(t, nil)
	for want, err := range map[string]error{"refused": &trunk.Refused{Reason: frame.RefusedByHost}, "dropped": errors.New("no answer")} {
		y.ends.mu.Lock()
		y.ends.err = err
		y.ends.mu.Unlock()
		if _, got := x.offer(t, 5); got != want {
			t.Errorf("the server %v: the client's connection was %s, want %s", err, got, want)
		}
	}
}

func TestWithoutAnotherAgentConnectionsPass(t *testing.T) {
	x, y := twoAgents(t, nil)
	y.Drain(true)
	if _, got := x.offer(t, 5); got != "passed" {
		t.Errorf("the far agent drains: the connection was %s", got)
	}
	y.Drain(false)
	if _, got := x.offer(t, 6); got != "passed" {
		t.Errorf("no such lane: the connection was %s", got)
	}
	x.Drain(true)
	if _, got := x.offer(t, 5); got != "passed" {
		t.Errorf("the near agent drains: the connection was %s", got)
	}
}

func TestTheNextAgentOfTheLaneIsAsked(t *testing.T) {
	n := newNetwork(t)
	x, y, z := n.agent("x", nil), n.agent("y", nil), n.agent("z", nil)
	lane := Lane{Number: 5, Client: clients, Server: servers, Near: []string{"x"}, Far: []string{"y", "z"}}
	y.tell(t, []Peer{x.at}, lane)
	z.tell(t, []Peer{x.at}, lane)
	x.tell(t, []Peer{y.at, z.at}, lane)
	x.connected(t, "y")
	x.connected(t, "z")
	y.Drain(true)
	if _, got := x.offer(t, 5); got != "accepted" || z.ends.dialed != 1 || y.ends.dialed != 0 {
		t.Errorf("the connection was %s, by y %d, by z %d", got, y.ends.dialed, z.ends.dialed)
	}
}

// An agent with a certificate asks for what the controller gave it no lane for: nothing is connected to.
func TestNobodyConnectsBeyondHisLanes(t *testing.T) {
	safety.Test(t, safety.Door)
	_, y := twoAgents(t, nil)
	good := frame.Open{Lane: 5, Client: client, Server: server}
	if why := y.forbidden("x", good); why != 0 {
		t.Fatalf("what is in the lane is refused: %v", why)
	}
	for what, m := range map[string]frame.Open{
		"no such lane":           {Lane: 6, Client: client, Server: server},
		"another client":         {Lane: 5, Client: netip.MustParseAddrPort("198.51.100.1:40000"), Server: server},
		"another server":         {Lane: 5, Client: client, Server: netip.MustParseAddrPort("198.51.100.1:80")},
		"another port":           {Lane: 5, Client: client, Server: netip.MustParseAddrPort("192.0.2.200:22")},
		"a server of the client": {Lane: 5, Client: client, Server: client},
	} {
		if why := y.forbidden("x", m); why != frame.NotMyLane {
			t.Errorf("%s: %v", what, why)
		}
	}
	if why := y.forbidden("w", good); why != frame.NotMyLane {
		t.Errorf("an agent that is not near in the lane: %v", why)
	}
}

// An agent of the network that this one was not told of, and one that the other is to begin with, get no trunk; nor does
// one that names another's.
func TestATrunkIsOfTheTwoThatItIsBetween(t *testing.T) {
	n := newNetwork(t)
	y := n.agent("y", nil)
	a, b, unknown := n.agent("a", nil), n.agent("b", nil), n.agent("c", nil)
	y.tell(t, []Peer{a.at, b.at})
	unknown.tell(t, []Peer{y.at})
	await(t, y, errNoPeer)
	a.tell(t, []Peer{y.at})
	a.connected(t, "y")
	a.mu.Lock()
	taken := a.peers["y"].number
	a.mu.Unlock()
	// b begins a trunk under a's number.
	p, err := b.newPeer(Peer{Name: "zz", Door: netip.MustParseAddrPort("127.0.0.1:1")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	b.mu.Lock()
	p.number = taken
	b.mu.Unlock()
	if err := b.begins(p, y.at); err == nil {
		t.Error("a second agent has a trunk by the number of another's")
	}
	if y.peers["a"].trunk.Connections() == 0 {
		t.Error("the trunk whose number was taken has ended")
	}
}

// begins makes one control connection of a trunk, and waits until it ends.
func (s *site) begins(p *peer, to Peer) error {
	tcp, err := s.Dial(context.Background(), netip.Addr{}, to.Door)
	if err != nil {
		return err
	}
	c := tls.Client(tcp, s.Client(to.Name, 0))
	defer c.Close()
	c.SetDeadline(time.Now().Add(within))
	h := frame.Hello{From: 1, To: 1, Use: frame.Control, Protection: frame.Sealed, Trunk: p.number, Incarnation: 1}
	if _, err := c.Write(h.Append(nil)); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, frame.HelloLen))
	return err
}

// await waits until an agent reports an error.
func await(t *testing.T, s *site, want error) {
	t.Helper()
	end := time.After(within)
	for {
		select {
		case e := <-s.events:
			t.Logf("%s: %v, %v", s.Name, e.Err, e.Path)
			if errors.Is(e.Err, want) || e.Path != nil && errors.Is(e.Path.Why, want) {
				return
			}
		case <-end:
			t.Fatalf("agent %s has not said: %v", s.Name, want)
		}
	}
}

func TestWhatIsWrongWithALaneIsSaid(t *testing.T) {
	good := Lane{Number: 1, Client: clients, Server: servers, Near: []string{"x"}, Far: []string{"y"}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Lane){
		"no number":    func(l *Lane) { l.Number = 0 },
		"no server":    func(l *Lane) { l.Server = netip.Prefix{} },
		"two families": func(l *Lane) { l.Server = netip.MustParsePrefix("2001:db8::/64") },
		"slot too big": func(l *Lane) { l.Slot, l.Bits = 4, 2 },
		"no far agent": func(l *Lane) { l.Far = nil },
	} {
		l := good
		change(&l)
		if err := l.Check(); err == nil {
			t.Errorf("%s: nobody complains", what)
		}
	}
}

func TestTwoAgentsThatProtectFramesDifferentlySaySo(t *testing.T) {
	n := newNetwork(t)
	x, y := n.agent("x", nil), n.agent("y", func(c *Config) { c.Protection = frame.Authenticated })
	y.tell(t, []Peer{x.at})
	x.tell(t, []Peer{y.at})
	for _, s := range []*site{x, y} {
		select {
		case e := <-s.events:
			if e.Err == nil {
				t.Errorf("%s: %+v", s.Name, e)
			}
			t.Log(e.Err)
		case <-time.After(within):
			t.Errorf("%s says nothing", s.Name)
		}
	}
}

// What an agent cannot do changes nothing: not who the others are, whose sessions go on, nor which lanes there are.
func TestWhatCannotBeDoneChangesNothing(t *testing.T) {
	safety.Test(t, safety.Flow)
	x, _ := twoAgents(t, nil)
	x.ends.mu.Lock()
	x.ends.full = errors.New("no room for lanes")
	x.ends.mu.Unlock()
	other := Peer{Name: "z", Door: netip.MustParseAddrPort("127.0.0.1:9")}
	lane := Lane{Number: 6, Client: clients, Server: servers, Near: []string{"x"}, Far: []string{"z"}}
	if err := x.Tell([]Peer{other}, []Lane{lane}); err == nil {
		t.Fatal("it says nothing")
	}
	if _, what := x.offer(t, 5); what != "accepted" {
		t.Errorf("a connection of the lane of before was %s", what)
	}
	if trunks := x.Trunks(); len(trunks) != 1 || !trunks["y"].Up {
		t.Errorf("trunks: %+v", trunks)
	}
}

// An agent that was given up and is told of again has a trunk again, also where it never heard of that itself.
func TestAnAgentThatIsToldOfAgainHasATrunkAgain(t *testing.T) {
	x, y := twoAgents(t, nil)
	lane := Lane{Number: 5, Client: clients, Server: servers, Port: 80, Near: []string{"x"}, Far: []string{"y"}}
	y.tell(t, nil)
	y.tell(t, []Peer{x.at}, lane)
	for end := time.Now().Add(within); ; {
		if _, what := x.offer(t, 5); what == "accepted" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("connections pass; trunks of x: %+v, of y: %+v", x.Trunks(), y.Trunks())
		}
	}
}

func TestConnectionsThatWereFoundAreCounted(t *testing.T) {
	all := []keeper.Found{{Key: trunkKey("y")}, {Key: sessionKey("y", 1)}, {Key: "settings"}, {Key: sessionKey("z", 1)}}
	if n := Sessions(all); n != 2 {
		t.Errorf("%d of 2 connections", n)
	}
}

// An agent that the other one does not know by the certificate that it shows learns how often that was, so that it can show
// another one.
func TestAnAgentThatIsNotKnownShowsAnotherCertificate(t *testing.T) {
	n, foreign := newNetwork(t), newNetwork(t)
	unknown := foreign.certificate("x")
	tries := make(chan int, 100)
	y := n.agent("y", nil)
	x := n.agent("x", func(c *Config) {
		known := c.Client
		c.Client = func(name string, failed int) *tls.Config {
			tries <- failed
			with := known(name, failed)
			if failed < 2 {
				with.Certificates = []tls.Certificate{unknown}
			}
			return with
		}
	})
	y.tell(t, []Peer{x.at})
	x.tell(t, []Peer{y.at})
	x.connected(t, "y")
	for want := range 3 {
		if got := <-tries; got != want {
			t.Errorf("attempt %d after %d in vain", want, got)
		}
	}
}
