package legs

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

var (
	client = netip.MustParseAddrPort("192.0.2.1:40000")
	server = netip.MustParseAddrPort("198.51.100.7:80")
	own    = netip.MustParseAddr("203.0.113.3")
	port   = netip.AddrPortFrom(own, 5000)
)

// A kernel has no sockets: clients come, and servers answer, when the test says so.
type kernel struct {
	comes  chan error // to Accept
	dialed chan netip.AddrPort
	closed bool
}

func (k *kernel) Await(netip.Addr, netip.AddrPort) (Awaited, error) { return k, nil }
func (k *kernel) At() netip.AddrPort                                { return port }
func (k *kernel) Close() error                                      { k.closed = true; return nil }

func (k *kernel) Accept(ctx context.Context) (*net.TCPConn, frame.Options, error) {
	select {
	case err := <-k.comes:
		return &net.TCPConn{}, frame.Options{}, err
	case <-ctx.Done():
		return nil, frame.Options{}, ctx.Err()
	}
}

func (k *kernel) Free(netip.AddrPort) {}

func (k *kernel) Dial(_ context.Context, _ netip.Addr, server netip.AddrPort, ready func(netip.AddrPort) error) (*net.TCPConn, frame.Options, frame.Options, error) {
	if err := ready(port); err != nil {
		return nil, frame.Options{}, frame.Options{}, err
	}
	k.dialed <- server
	return &net.TCPConn{}, frame.Options{}, frame.Options{}, nil
}

func start(t *testing.T) (*Legs, *kernel, chan *apiv1.BoostReport) {
	k := &kernel{comes: make(chan error, 1), dialed: make(chan netip.AddrPort, 1)}
	l := New([]netip.Addr{netip.MustParseAddr("2001:db8::3"), own}, k)
	said := make(chan *apiv1.BoostReport, 100)
	l.Use(func(m *apiv1.BoostReport) { said <- m })
	return l, k, said
}

func next(t *testing.T, said chan *apiv1.BoostReport) *apiv1.BoostReport {
	t.Helper()
	select {
	case m := <-said:
		return m
	case <-time.After(20 * time.Second):
		t.Fatal("the controller hears nothing")
		return nil
	}
}

func (l *Legs) comes(t *testing.T) agent.SYN {
	t.Helper()
	l.First(&apiv1.BoostSYN{Number: 4, Lane: 9, Client: client.String(), Server: server.String()})
	syn, err := l.Next(t.Context())
	if err != nil || syn.Client() != client || syn.Server() != server || syn.Lane() != 9 {
		t.Fatalf("%+v, %v", syn, err)
	}
	return syn
}

// A client is waited for at a port of the agent's own, which the controller hears of; the leg is there until the session ends.
func TestAClientIsWaitedForAtAPortOfItsOwn(t *testing.T) {
	l, k, said := start(t)
	syn := l.comes(t)
	k.comes <- nil
	if _, _, err := syn.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := next(t, said).GetFirst(); v.GetNumber() != 4 || v.GetVerdict() != apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT || v.GetAt() != port.String() {
		t.Errorf("it says %v", v)
	}
	if all := l.All(); len(all) != 1 || all[0].Far || all[0].At != port.String() || all[0].Lane != 9 || all[0].Number != 0 {
		t.Errorf("it has %v", all)
	}
	l.Over("192.0.2.2:1", server.String(), port)                            // of others it knows nothing
	l.Over(client.String(), server.String(), netip.AddrPortFrom(own, 5001)) // nor of another connection of the same hosts
	l.Over(client.String(), server.String(), port)
	if o := next(t, said).GetLegOver(); o.GetClient() != client.String() || o.GetFar() || o.GetAt() != port.String() {
		t.Errorf("it says %v", o)
	}
	if all := l.All(); len(all) != 0 {
		t.Errorf("it has %v", all)
	}
}

// What is decided otherwise is said: the server refuses by itself.
func TestEachDecisionIsSaid(t *testing.T) {
	l, k, said := start(t)
	for _, c := range []struct {
		decide func(agent.SYN) error
		want   apiv1.BoostVerdict
	}{
		{agent.SYN.Pass, apiv1.BoostVerdict_BOOST_VERDICT_PASS},
		{agent.SYN.Refuse, apiv1.BoostVerdict_BOOST_VERDICT_PASS},
		{agent.SYN.Drop, apiv1.BoostVerdict_BOOST_VERDICT_DROP},
	} {
		if err := c.decide(l.comes(t)); err != nil {
			t.Error(err)
		}
		if v := next(t, said).GetFirst(); v.GetVerdict() != c.want || v.GetAt() != "" {
			t.Errorf("it says %v, want %v", v, c.want)
		}
	}
	syn := l.comes(t)
	k.comes <- errors.New("the client does not come")
	if _, _, err := syn.Accept(t.Context()); err == nil {
		t.Error("nobody came, and there is a connection")
	}
	next(t, said)
	if o := next(t, said).GetLegOver(); o == nil || len(l.All()) != 0 {
		t.Errorf("it says %v, and has %v", o, l.All())
	}
	syn = l.comes(t)
	l.Use(nil)
	if _, _, err := syn.Accept(t.Context()); err == nil || !k.closed {
		t.Error("no controller is there, and it waits for a client whom nobody sends")
	}
}

// A far agent connects once the switches know its port, and not where they do not get to.
func TestAServerIsConnectedToOnceItsSwitchesKnow(t *testing.T) {
	l, k, said := start(t)
	dial := func() chan error {
		done := make(chan error, 1)
		go func() {
			_, _, _, err := l.Dial(t.Context(), 9, client, server)
			done <- err
		}()
		return done
	}
	done := dial()
	leg := next(t, said).GetLeg()
	if !leg.GetFar() || leg.At != port.String() || leg.Lane != 9 || leg.Number == 0 {
		t.Errorf("it says %v", leg)
	}
	if len(k.dialed) != 0 {
		t.Error("it connects before anybody has answered")
	}
	l.Use(nil) // the next controller hears of it as well
	if all := l.All(); len(all) != 1 || all[0].Number != leg.Number {
		t.Errorf("it has %v", all)
	}
	l.Use(func(m *apiv1.BoostReport) { said <- m })
	l.Ready(&apiv1.BoostLegReady{Number: leg.Number + 1})
	l.Ready(&apiv1.BoostLegReady{Number: leg.Number})
	l.Ready(&apiv1.BoostLegReady{Number: leg.Number})
	if err := <-done; err != nil || <-k.dialed != server {
		t.Errorf("%v", err)
	}
	if all := l.All(); len(all) != 1 || all[0].Number != 0 {
		t.Errorf("it has %v", all)
	}
	l.Over(client.String(), server.String(), port)
	next(t, said)
	done = dial()
	l.Ready(&apiv1.BoostLegReady{Number: next(t, said).GetLeg().GetNumber(), Refused: "no lane of yours"})
	if err := <-done; err == nil {
		t.Error("it was refused, and connects")
	}
	l.Use(nil)
	if err := <-dial(); err == nil {
		t.Error("nobody could tell the switches, and it connects")
	}
}

// A process that goes on with sessions of one before knows which of them have ports of their own.
func TestLegsOfAProcessBeforeAreKnown(t *testing.T) {
	l, _, _ := start(t)
	open := frame.Open{Lane: 9, Client: client, Server: server}
	l.Know(trunk.SessionStatus{Open: open, Mine: true, End: server})                                  // steered
	l.Know(trunk.SessionStatus{Open: open, Mine: false, End: client})                                 // the same, at the far end
	l.Know(trunk.SessionStatus{Open: open, Mine: true})                                               // without a client yet
	l.Know(trunk.SessionStatus{Open: open, Mine: true, End: netip.MustParseAddrPort("192.0.2.77:1")}) // none of its addresses
	if all := l.All(); len(all) != 0 {
		t.Errorf("it has %v", all)
	}
	l.Know(trunk.SessionStatus{Open: open, Mine: false, End: port})
	if all := l.All(); len(all) != 1 || !all[0].Far || all[0].At != port.String() {
		t.Errorf("it has %v", all)
	}
}

// An end host of a family that the agent has no address of is not one for it.
func TestAnAgentNeedsAnAddressOfTheFamily(t *testing.T) {
	l := New([]netip.Addr{netip.MustParseAddr("2001:db8::3")}, &kernel{})
	l.Use(func(*apiv1.BoostReport) {})
	if _, _, _, err := l.Dial(t.Context(), 9, client, server); err == nil {
		t.Error("it connects to a server of IPv4")
	}
	if _, _, err := l.comes(t).Accept(t.Context()); !errors.Is(err, errFamily) {
		t.Errorf("%v", err)
	}
}
