package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/sid"
)

// A Role is the end of a flow at which this host stands.
type Role uint8

// The roles of abi.h.
const (
	Client Role = 1
	Server Role = 2
)

func (r Role) String() string {
	if r == Client {
		return "client"
	}
	return "server"
}

// A State is how far a flow has come, docs/protocol.md §3.
type State uint8

// The states of abi.h, and Closing: both FINs or an RST have passed.
const (
	Connecting State = 1
	Binding    State = 2
	BoundFlow  State = 3
	HalfOpen   State = 4
	Closing    State = 5
)

func (s State) String() string {
	switch s {
	case Connecting, Binding:
		return "connecting"
	case BoundFlow:
		return "bound"
	case HalfOpen:
		return "half-open"
	case Closing:
		return "closing"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// A Flow is one flow of this host.
type Flow struct {
	ID        sid.SocketID
	Role      Role
	Proto     sid.Proto
	Local     netip.AddrPort // as the program sees its end
	Peer      netip.AddrPort // as the program sees the other end; port 0: any, of a client's datagram flow
	WireLocal netip.AddrPort // the address part is invalid while no uplink has a locator
	WirePeer  netip.AddrPort // the service address until bound
	State     State
	Service   sid.ServiceID
	LastSeen  uint64 // CLOCK_MONOTONIC, ns

	Tuple   Tuple
	Stable  netip.Addr  // docs/protocol.md §3.3: at a client the address of the attempt that was answered
	Locator sid.Locator // of ours, from which it sends
	Uplink  int         // the interface of the locator; 0: retired, it leaves by the one at hand
}

// Flows calls f for each flow until it returns false. Half-open ones are not among them.
func (e *Edge) Flows(f func(Flow) bool) error {
	wire := e.anyLocator()
	return scan(e.maps.IngressFlows, func(id uint64, v *edgeIngressFlow) bool {
		return f(e.flow(id, v, wire))
	})
}

// FlowsAll is Flows, half-open ones included.
func (e *Edge) FlowsAll(f func(Flow) bool) error { return e.Flows(f) }

// Flow finds one flow by its socketID.
func (e *Edge) Flow(id sid.SocketID) (Flow, bool, error) {
	var v edgeIngressFlow
	key := network(uint64(id))
	err := e.maps.IngressFlows.Lookup(key, &v)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return Flow{}, false, nil
	}
	if err != nil {
		return Flow{}, false, fmt.Errorf("host edge: look up flow %v: %w", id, err)
	}
	return e.flow(key, &v, e.anyLocator()), true, nil
}

// Count is the number of flows.
func (e *Edge) Count() (int, error) {
	n := 0
	err := scan(e.maps.IngressFlows, func(uint64, *edgeIngressFlow) bool { n++; return true })
	return n, err
}

// A Census is how many flows there are, and how many connections each instance of this host serves.
type Census struct {
	Flows   int
	Serving map[sid.Triple]uint32
}

// Census counts the flows. It is cheaper than Flows: one system call for each thousand.
func (e *Edge) Census() (Census, error) {
	c := Census{Serving: map[sid.Triple]uint32{}}
	err := scan(e.maps.IngressFlows, func(_ uint64, v *edgeIngressFlow) bool {
		c.Flows++
		if Role(v.Role) != Server || ended(v.End) {
			return true
		}
		port := v.Key.Lport
		if port == [2]byte{} {
			port = v.Lport
		}
		if id, ok := e.cfg.Space.ServiceOf(netip.AddrFrom16(v.Key.Local)); ok {
			c.Serving[sid.Triple{Service: id, Proto: sid.Proto(v.Key.Proto), Port: binary.BigEndian.Uint16(port[:])}]++
		}
		return true
	})
	return c, err
}

func (e *Edge) flow(key uint64, v *edgeIngressFlow, wire sid.Locator) Flow {
	f := Flow{
		ID:       sid.SocketID(network(key)),
		Role:     Role(v.Role),
		Proto:    sid.Proto(v.Key.Proto),
		Local:    addrPort(v.Key.Local, v.Key.Lport),
		Peer:     addrPort(v.Key.Remote, v.Key.Rport),
		State:    State(v.State),
		LastSeen: e.lastSeen(v),
	}
	if f.Role == Server && f.Local.Port() == 0 {
		f.Local = addrPort(v.Key.Local, v.Lport)
	}
	if ended(v.End) {
		f.State = Closing
	}
	peer := netip.AddrFrom16(v.Peer)
	if peer.IsUnspecified() {
		peer = f.Peer.Addr()
	}
	f.WirePeer = netip.AddrPortFrom(peer, f.Peer.Port())
	if wire != 0 {
		f.WireLocal = netip.AddrPortFrom(wire.Addr(uint64(f.ID)), f.Local.Port())
	}
	service := f.Local.Addr()
	if f.Role == Client {
		service = f.Peer.Addr()
	}
	f.Service, _ = e.cfg.Space.ServiceOf(service)
	return f
}

// lastSeen is the later stamp of both directions.
func (e *Edge) lastSeen(v *edgeIngressFlow) uint64 {
	var out edgeEgressFlow
	if err := e.maps.EgressFlows.Lookup(&v.Key, &out); err != nil {
		return v.Seen
	}
	return max(v.Seen, out.Seen)
}

func addrPort(addr [16]byte, port [2]byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(addr), binary.BigEndian.Uint16(port[:]))
}

// ended reports whether both FINs or an RST have passed.
func ended(end uint8) bool { return end&endRST != 0 || end&endFINs == endFINs }

// Bits of enum flow_end.
const (
	endFINOut = 1
	endFINIn  = 2
	endRST    = 4
	endFINs   = endFINOut | endFINIn
)

// batch is how many entries one system call brings.
const batch = 1024

// scan walks a flow map in batches, until f returns false. Entries that come or go meanwhile may be missed or
// seen twice.
func scan(m *ebpf.Map, f func(uint64, *edgeIngressFlow) bool) error {
	keys, values := make([]uint64, batch), make([]edgeIngressFlow, batch)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			if !f(keys[i], &values[i]) {
				return nil
			}
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil // the end
		}
		if err != nil {
			return fmt.Errorf("host edge: read flows: %w", err)
		}
	}
}
