package steer

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/boost/announce"
)

// A net is a network of switches that take everything, and remember what they were given last.
type net struct {
	controller.Network
	switches func(controller.Switch)
	held     func(string, uint64)
	packets  func(controller.Packet)
	expired  func(string, []controller.Flow)
	flows    chan []controller.Flow
	punts    map[string]func(controller.Packet) // by subscription, but for announcements
	sent     chan controller.Out
	changes  chan [2][]controller.Flow // put in, taken out
}

func (n *net) HandleSwitches(f func(controller.Switch))        { n.switches = f }
func (n *net) HandleHeld(f func(string, uint64))               { n.held = f }
func (n *net) HandleExpired(f func(string, []controller.Flow)) { n.expired = f }
func (n *net) Every(time.Duration, func())                     {}
func (n *net) Report(string, string)                           {}

func (n *net) ChangeFlows(_ string, set, unset []controller.Flow) error {
	n.changes <- [2][]controller.Flow{set, unset}
	return nil
}

func (n *net) Send(_ string, out controller.Out) error {
	n.sent <- out
	return nil
}

func (n *net) SetFlows(_ string, f []controller.Flow) error {
	n.flows <- f
	return nil
}

func (n *net) Subscribe(s controller.Subscription, f func(controller.Packet)) error {
	switch {
	case s.Name == "announcements":
		n.packets = f
	case len(s.Match) == 0:
		delete(n.punts, s.Name)
	default:
		n.punts[s.Name] = f
	}
	return nil
}

// A mind is a controller that says what the test has it say.
type mind struct {
	apiv1connect.UnimplementedBoostSteeringHandler
	say  chan *apiv1.SteerRules
	tell chan *apiv1.SteerOrder
	hear chan *apiv1.SteerReport
}

func (m *mind) Steer(ctx context.Context, s *connect.BidiStream[apiv1.SteerReport, apiv1.SteerOrder]) error {
	if _, err := s.Receive(); err != nil {
		return err
	}
	if err := s.Send(&apiv1.SteerOrder{Order: &apiv1.SteerOrder_Joined{Joined: &apiv1.SteerJoined{NetworkId: "n", Epoch: 1}}}); err != nil {
		return err
	}
	go func() {
		for {
			r, err := s.Receive()
			if err != nil {
				return
			}
			m.hear <- r
		}
	}()
	for {
		select {
		case r := <-m.say:
			if err := s.Send(&apiv1.SteerOrder{Order: &apiv1.SteerOrder_Rules{Rules: r}}); err != nil {
				return err
			}
		case o := <-m.tell:
			if err := s.Send(o); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// next is the next report of a kind.
func next[T any](t *testing.T, m *mind, of func(*apiv1.SteerReport) *T) *T {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case r := <-m.hear:
			if x := of(r); x != nil {
				return x
			}
		case <-late:
			t.Fatal("the controller hears nothing")
		}
	}
}

func start(t *testing.T) (*net, *mind) {
	m := &mind{say: make(chan *apiv1.SteerRules), tell: make(chan *apiv1.SteerOrder), hear: make(chan *apiv1.SteerReport, 100)}
	_, handler := apiv1connect.NewBoostSteeringHandler(m)
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.CloseClientConnections)
	ctx, cancel := context.WithCancel(t.Context())
	n := &net{
		flows: make(chan []controller.Flow, 100), punts: map[string]func(controller.Packet){}, sent: make(chan controller.Out, 100),
		changes: make(chan [2][]controller.Flow, 100),
	}
	module := New(ctx, server.URL, slog.New(slog.DiscardHandler))
	if err := module.Start(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	n.switches(s1("to-x"))
	next(t, m, (*apiv1.SteerReport).GetState)
	return n, m
}

func s1(ports ...string) controller.Switch {
	s := controller.Switch{Name: "s1", Up: true}
	for i, p := range ports {
		s.Ports = append(s.Ports, controller.Port{Name: p, Number: controller.PortNumber(i + 1), Up: true})
	}
	return s
}

var rules = &apiv1.SteerRules{Switch: "s1", Generation: 7, Exempt: []string{"to-x"}, Rules: []*apiv1.SteerRule{
	{Kind: apiv1.SteerKind_STEER_KIND_REQUESTS, Source: "192.0.2.0/24", Destination: "198.51.100.7/32", SourcePort: 3, SourceMask: 7, DestinationPort: 443, DestinationMask: 0xffff, Port: "to-x", Mac: []byte{2, 0, 0, 0, 0, 1}},
	{Kind: apiv1.SteerKind_STEER_KIND_PINNED, Source: "2001:db8::1/128", Destination: "2001:db8::2/128", SourcePort: 443, SourceMask: 0xffff, DestinationPort: 40000, DestinationMask: 0xffff, Port: "to-x", Mac: []byte{2, 0, 0, 0, 0, 1}},
}}

// Rules are in table 0, before Scaffold's, ranked by kind, and give way to what comes from an agent.
func TestRulesBecomeFlows(t *testing.T) {
	flows, whole, err := flowsOf(rules, s1("to-x"))
	if err != nil || !whole {
		t.Fatal(whole, err)
	}
	var got []string
	for _, f := range flows {
		if f.Table != 0 || !f.First {
			t.Errorf("flow %+v", f)
		}
		got = append(got, strings.ReplaceAll(f.Match.String(), " ", ""))
	}
	want := []string{
		"reg3=0x0/0x1,in_port=1,eth_type=0x800,ip_proto=6", "reg3=0x0/0x1,in_port=1,eth_type=0x86dd,ip_proto=6",
		"reg3=0x0/0x1,eth_type=0x800,ip_proto=6,ip_src=192.0.2.0/24,ip_dst=198.51.100.7,tcp_src=0x3/0x7,tcp_dst=443",
		"reg3=0x0/0x1,eth_type=0x86dd,ip_proto=6,ipv6_src=2001:db8::1,ipv6_dst=2001:db8::2,tcp_src=443,tcp_dst=40000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if flows[0].Priority <= flows[3].Priority || flows[3].Priority <= flows[2].Priority {
		t.Errorf("priorities %d, %d, %d", flows[0].Priority, flows[3].Priority, flows[2].Priority)
	}
	for what, change := range map[string]func(*apiv1.SteerRule){
		"kind": func(r *apiv1.SteerRule) { r.Kind = 0 }, "MAC": func(r *apiv1.SteerRule) { r.Mac = nil },
		"prefix": func(r *apiv1.SteerRule) { r.Source = "x" }, "families": func(r *apiv1.SteerRule) { r.Source = "2001:db8::/64" },
	} {
		r := apiv1.SteerRule{Kind: 1, Source: "192.0.2.0/24", Destination: "198.51.100.7/32", Port: "to-x", Mac: make([]byte, 6)}
		change(&r)
		if _, _, err := flowsOf(&apiv1.SteerRules{Rules: []*apiv1.SteerRule{&r}}, s1("to-x")); err == nil {
			t.Errorf("a rule with another %s is taken", what)
		}
	}
}

// The controller hears that a switch has its rules once it has all of them: not of a call before, and not while it lacks a
// port.
func TestTheControllerHearsWhatSwitchesHave(t *testing.T) {
	n, m := start(t)
	more := &apiv1.SteerRules{Switch: "s1", Generation: 8, Rules: append(slices.Clone(rules.Rules), &apiv1.SteerRule{
		Kind: 1, Source: "192.0.2.0/24", Destination: "198.51.100.7/32", Port: "to-y", Mac: make([]byte, 6)})}
	m.say <- rules
	<-n.flows
	n.held("s1", 1)
	if got := next(t, m, (*apiv1.SteerReport).GetSteered); got.Generation != 7 {
		t.Errorf("told %v", got)
	}
	m.say <- more
	<-n.flows
	n.held("s1", 1)
	n.held("s1", 2) // it has no port to-y
	n.switches(s1("to-x", "to-y"))
	<-n.flows
	n.held("s1", 2)
	n.held("s1", 3)
	if got := next(t, m, (*apiv1.SteerReport).GetSteered); got.Generation != 0 || got.Legs != 8 { // there are none, and they lack no port
		t.Errorf("told %v", got)
	}
	if got := next(t, m, (*apiv1.SteerReport).GetSteered); got.Generation != 8 {
		t.Errorf("told %v", got)
	}
	for len(m.hear) > 0 {
		if s := (<-m.hear).GetSteered(); s != nil {
			t.Errorf("told again: %v", s)
		}
	}
}

// What comes to switches is told: announcements, and no other LLDP; ports that go down.
func TestTheControllerHearsWhereAgentsAre(t *testing.T) {
	n, m := start(t)
	n.packets(controller.Packet{Switch: "s1", Port: "to-z", Data: []byte("something else")})
	key := make([]byte, announce.KeyLen)
	n.packets(controller.Packet{Switch: "s1", Port: "to-x", Data: announce.Announcement{Agent: "x", Port: "eth0", MAC: [6]byte{2}, Made: 4}.Append(nil, key)})
	got := next(t, m, (*apiv1.SteerReport).GetSighting)
	if got.Switch != "s1" || got.Port != "to-x" || got.Agent != "x" || got.AgentPort != "eth0" || got.Made != 4 || len(got.Proof) != announce.ProofLen {
		t.Errorf("told %v", got)
	}
	down := s1("to-x")
	down.Ports[0].Up = false
	n.switches(down)
	if got := next(t, m, (*apiv1.SteerReport).GetPortDown); got.Port != "to-x" {
		t.Errorf("told %v", got)
	}
	down.Up = false
	n.switches(down)
	if got := next(t, m, (*apiv1.SteerReport).GetState); got.Up {
		t.Errorf("told %v", got)
	}
}
