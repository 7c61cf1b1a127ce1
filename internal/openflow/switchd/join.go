package switchd

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/userstack"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/sid"
)

const (
	// portMTU is what every link of IPv6 carries. OpenFlow does not say what a port does.
	portMTU = 1280
	// keepTicks is for how many HELLO intervals the connections of hosts are kept for a switch that is away.
	keepTicks = 30
	// tryEvery is how often a switch is tried whose table does not punt yet.
	tryEvery = 50 * time.Millisecond
)

var allNodes = netip.MustParseAddr("ff02::1")

// A join is the module that makes switches routers to their neighbours: it greets hosts and routers on each
// port, hears routers that greet, and carries the control channel of hosts to the controller. A stack in user
// space does on the switch's ports what the kernel does on a Linux router's.
type join struct {
	to    api.Endpoint    // the controller's API
	relay uint16          // TCP port that takes the control channel of hosts, docs/protocol.md §5.1
	keys  *agent.LinkKeys // of all switches of the process
	log   *slog.Logger
	net   controller.Network

	mu       sync.Mutex // Close comes from elsewhere; all else is the module's own goroutine
	switches map[string]*joined
	closed   bool
}

// joined is a switch that we speak for.
type joined struct {
	name       string
	stack      *userstack.Stack
	relay      *agent.Relay
	numbers    atomic.Pointer[map[string]ofp.Port] // of the ports; the stack's goroutines read it
	is         controller.Switch                   // as last heard of
	delivered  bool                                // what is for us is punted; before, nobody is greeted
	away       int                                 // HELLO intervals
	neighbours *agent.Neighbours
	told       []controller.Link
}

func newJoin(to api.Endpoint, keys *agent.LinkKeys, log *slog.Logger) *join {
	// Hosts that know us by another port know connections that are no more, and connect again.
	const dynamic = 49152 // RFC 6335
	return &join{to: to, keys: keys, relay: uint16(dynamic + rand.IntN(1<<16-dynamic)), log: log, switches: map[string]*joined{}}
}

// Name implements controller.Module.
func (*join) Name() string { return "join" }

// Start implements controller.Module.
func (j *join) Start(n controller.Network) error {
	j.net = n
	n.HandleSwitches(func(s controller.Switch) { j.locked(func() { j.changed(s) }) })
	n.Every(helloEvery, func() { j.locked(j.tick) })
	n.Every(tryEvery, func() { j.locked(j.tryAll) })
	return nil
}

// Close resets the hosts' connections; nothing of the module is left running.
func (j *join) Close() {
	j.locked(func() {
		j.closed = true
		for _, s := range j.switches {
			j.drop(s)
		}
	})
}

// locked does f unless the module is closed.
func (j *join) locked(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		f()
	}
}

// changed takes the news of a switch.
func (j *join) changed(is controller.Switch) {
	s := j.switches[is.Name]
	if s != nil && (s.is.MAC != is.MAC || s.is.LinkLocal != is.LinkLocal) {
		j.drop(s) // another one has the name now
		s = nil
	}
	if s == nil {
		if !is.Up || !is.LinkLocal.IsValid() {
			return
		}
		var err error
		if s, err = j.begin(is); err != nil {
			j.log.Error("hosts at this switch cannot join", "switch", is.Name, "error", err)
			j.net.Report(is.Name, "hosts cannot join here: "+err.Error())
			return
		}
	}
	was := s.is
	s.is = is
	if !is.Up {
		return
	}
	if !was.Up {
		s.away, s.delivered = 0, false
	}
	j.setPorts(s)
	for _, p := range was.Ports {
		if !wasUp(is, p.Name) {
			s.neighbours.Unplugged(p.Name)
		}
	}
	all := was.Locator != is.Locator || was.Service != is.Service
	for _, p := range is.Ports {
		if p.Up && (all || !wasUp(was, p.Name)) {
			j.meet(s, p.Name)
		}
	}
	j.try(s)
	j.tellAll() // a name that was a neighbour's may now be one of ours
}

// meet greets who is at a port, and asks who is there.
func (j *join) meet(s *joined, port string) {
	j.greet(s, port)
	j.solicit(s, port)
}

func wasUp(was controller.Switch, name string) bool {
	for _, p := range was.Ports {
		if p.Name == name {
			return p.Up
		}
	}
	return false
}

// begin makes what a switch needs.
func (j *join) begin(is controller.Switch) (*joined, error) {
	s := &joined{name: is.Name, neighbours: agent.NewNeighbours(is.Name, j.keys)}
	s.neighbours.Listed()
	s.numbers.Store(&map[string]ofp.Port{})
	stack, err := userstack.New(userstack.Config{MAC: is.MAC, LinkLocal: is.LinkLocal,
		Output: func(port string, frame []byte) { j.send(s, port, frame) }})
	if err != nil {
		return nil, err
	}
	listener, err := stack.ListenTCP(j.relay)
	if err != nil {
		stack.Close()
		return nil, err
	}
	s.stack, s.relay = stack, agent.NewRelay(listener.Accept, j.dial, j.log.With("switch", is.Name))
	stack.HandleUDP(sid.Port, func(d userstack.Datagram) { j.message(s, d) })
	for _, x := range subscriptions(is) {
		if err := j.net.Subscribe(x, j.packet); err != nil {
			s.end()
			return nil, fmt.Errorf("subscribe to %s: %w", x.Name, err)
		}
	}
	j.switches[is.Name] = s
	return s, nil
}

// subscriptions are what the switch is to punt: all that is meant for the router itself.
func subscriptions(is controller.Switch) []controller.Subscription {
	ours := ofp.Addr(ofp.IPv6Dst, is.LinkLocal)
	ip := func(proto uint64, more ...ofp.OXM) ofp.Match {
		return append(ofp.Match{ofp.Uint(ofp.EthType, header.EtherIPv6), ofp.Uint(ofp.IPProto, proto)}, more...)
	}
	all := []controller.Subscription{
		{Name: "nd-ask", Match: ip(header.ICMPv6, ofp.Uint(ofp.ICMPv6Type, 135), ofp.Addr(ofp.NDTarget, is.LinkLocal))},
		{Name: "nd-answer", Match: ip(header.ICMPv6, ours, ofp.Uint(ofp.ICMPv6Type, 136))},
		{Name: "ping", Match: ip(header.ICMPv6, ours, ofp.Uint(ofp.ICMPv6Type, 128))},
		{Name: "message-all", Match: ip(header.UDP, ofp.Addr(ofp.IPv6Dst, allNodes), ofp.Uint(ofp.UDPDst, sid.Port))},
		{Name: "message", Match: ip(header.UDP, ours, ofp.Uint(ofp.UDPDst, sid.Port))},
		{Name: "relay", Match: ip(header.TCP, ours), Rate: 10_000}, // whatever the port: a restart is to change no rule
	}
	for i := range all {
		all[i].Switch = is.Name
	}
	return all
}

// setPorts gives the stack the ports that the switch has. One without a carrier stays: its connections may
// outlive a cable that is plugged in again.
func (j *join) setPorts(s *joined) {
	numbers := map[string]ofp.Port{}
	for _, p := range s.is.Ports {
		numbers[p.Name] = p.Number
		if err := s.stack.AddPort(p.Name, portMTU); err != nil {
			j.log.Error("hosts at this port cannot join", "switch", s.name, "port", p.Name, "error", err)
		}
	}
	s.numbers.Store(&numbers)
	for _, name := range s.stack.Ports() {
		if _, ok := numbers[name]; !ok {
			s.stack.RemovePort(name)
		}
	}
}

// packet takes what a switch punted.
func (j *join) packet(p controller.Packet) {
	j.locked(func() {
		switch s := j.switches[p.Switch]; {
		case s == nil:
		case p.Number == ofp.PortController:
			j.tried(s)
		default:
			s.stack.Deliver(p.Port, p.Data)
		}
	})
}

// send has a switch send a frame of the stack's; where it is away or too busy the frame is lost.
func (j *join) send(s *joined, port string, frame []byte) {
	if number, ok := (*s.numbers.Load())[port]; ok {
		out := controller.Out{Actions: []controller.Action{controller.Output{Port: number}}, Data: frame}
		if err := j.net.Send(s.name, out); err != nil {
			j.log.Debug("a packet was not sent", "switch", s.name, "port", port, "error", err)
		}
	}
}

// tick is a HELLO interval.
func (j *join) tick() {
	for _, s := range j.switches {
		if !s.is.Up {
			if s.away++; s.away > keepTicks {
				j.drop(s)
			}
			continue
		}
		for _, p := range s.is.Ports {
			if p.Up {
				j.greet(s, p.Name)
			}
		}
		s.neighbours.Tick()
		j.prove(s)
		j.tell(s)
	}
}

// tryAll tries those that do not punt yet.
func (j *join) tryAll() {
	for _, s := range j.switches {
		j.try(s)
	}
}

// try has the switch look up a packet that it is to punt. Who is greeted answers at once, and what he says must
// not be lost (docs/protocol.md §5.1).
func (j *join) try(s *joined) {
	if s.delivered || !s.is.Up {
		return
	}
	syn := header.Segment{Dst: j.relay}
	frame := header.AppendIPv6(ethernet(s.is.MAC, s.is.MAC), s.is.LinkLocal, s.is.LinkLocal, header.TCP, 1, syn.Len())
	frame = syn.Append(frame)
	if err := j.net.Send(s.name, controller.Out{Actions: []controller.Action{controller.Output{Port: ofp.PortTable}}, Data: frame}); err != nil {
		j.log.Debug("not tried", "switch", s.name, "error", err)
	}
}

// tried notes that the switch punts.
func (j *join) tried(s *joined) {
	if s.delivered {
		return
	}
	s.delivered = true
	for _, p := range s.is.Ports {
		if p.Up {
			j.meet(s, p.Name)
		}
	}
}

// drop forgets a switch.
func (j *join) drop(s *joined) {
	delete(j.switches, s.name)
	s.end()
}

func (s *joined) end() {
	s.stack.Close()
	s.relay.Wait()
}

// helloEvery is between HELLOs on a port, docs/protocol.md §4.
const helloEvery = time.Second

// dial connects with the controller.
func (j *join) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, j.to.Network, j.to.Address)
}
