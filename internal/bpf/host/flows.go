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
	Blocked    State = 6
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
	case Blocked:
		return "blocked"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// A Flow is one flow of this host.
type Flow struct {
	ID        sid.SocketID
	Role      Role
	Proto     sid.Proto
	Local     netip.AddrPort // as the program sees its end
	Peer      netip.AddrPort // as the program sees the other end; port 0: of a ping, and any, of a datagram flow that is older than this program
	WireLocal netip.AddrPort // the address part is invalid while no uplink has a locator
	WirePeer  netip.AddrPort // the service address until bound
	State     State
	Service   sid.ServiceID
	LastSeen  uint64 // CLOCK_MONOTONIC, ns

	Tuple   Tuple
	Birth   sid.SocketID // its first one: what tells it from a later flow of the same tuple
	Stable  netip.Addr   // docs/protocol.md §3.3: at a client the address of the attempt that was answered
	Locator sid.Locator  // of ours, from which it sends
	Uplink  int          // the interface of the locator; 0: retired, it leaves by the one at hand

	Untold bool // its process died, and there was no room for an event of it

	born [3]uint8 // see Began
}

// Flows calls f for each flow until it returns false. Half-open ones are not among them, nor are the pings that this
// host answers, and datagram flows beyond a peer's share.
func (e *Edge) Flows(f func(Flow) bool) error {
	_, err := e.visit(e.maps.EgressFlows, e.flow, f)
	return err
}

// FlowsAll is Flows, those included.
func (e *Edge) FlowsAll(f func(Flow) bool) error {
	return e.visitAll(e.flow, f)
}

// Walk is FlowsAll, several times faster: LastSeen is when something was sent last, whatever came since.
func (e *Edge) Walk(f func(Flow) bool) error { return e.visitAll(e.sender, f) }

// A telling makes a Flow of an entry.
type telling func(*edgeFlowKey, *edgeEgressFlow, *[8]edgeSlot) Flow

func (e *Edge) visitAll(tell telling, f func(Flow) bool) error {
	more, err := e.visit(e.maps.EgressFlows, tell, f)
	if more && err == nil {
		_, err = e.visit(e.maps.EgressHalf, tell, f)
	}
	return err
}

func (e *Edge) visit(m *ebpf.Map, tell telling, f func(Flow) bool) (more bool, err error) {
	slots, err := e.slots()
	if err != nil {
		return false, fmt.Errorf("host edge: read the uplinks: %w", err)
	}
	more = true
	err = scan(m, func(key *edgeFlowKey, out *edgeEgressFlow) bool {
		more = f(tell(key, out, &slots))
		return more
	})
	return more, err
}

// Flow finds one flow by any of its socketIDs.
func (e *Edge) Flow(id sid.SocketID) (Flow, bool, error) {
	key := network(uint64(id))
	for _, m := range []*ebpf.Map{e.maps.IngressFlows, e.maps.IngressHalf} {
		var in edgeIngressFlow
		err := m.Lookup(key, &in)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			continue
		}
		if err != nil {
			return Flow{}, false, fmt.Errorf("host edge: look up flow %v: %w", id, err)
		}
		return e.lookup(&in.Key)
	}
	return Flow{}, false, nil
}

// Lookup finds one flow by its tuple, also a half-open one.
func (e *Edge) Lookup(t Tuple) (Flow, bool, error) {
	key := t.key()
	return e.lookup(&key)
}

func (e *Edge) lookup(key *edgeFlowKey) (Flow, bool, error) {
	for _, m := range []*ebpf.Map{e.maps.EgressFlows, e.maps.EgressHalf} {
		var out edgeEgressFlow
		err := m.Lookup(key, &out)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			continue
		}
		slots, err2 := e.slots()
		if err = errors.Join(err, err2); err != nil {
			return Flow{}, false, fmt.Errorf("host edge: look up flow %v: %w", tupleOf(key), err)
		}
		return e.flow(key, &out, &slots), true, nil
	}
	return Flow{}, false, nil
}

// Count is the number of flows.
func (e *Edge) Count() (int, error) {
	n := 0
	err := scan(e.maps.EgressFlows, func(*edgeFlowKey, *edgeEgressFlow) bool { n++; return true })
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
	err := scan(e.maps.EgressFlows, func(key *edgeFlowKey, out *edgeEgressFlow) bool {
		c.Flows++
		if Role(out.Role) != Server || ended(out.End) {
			return true
		}
		if id, ok := e.cfg.Space.ServiceOf(netip.AddrFrom16(key.Local)); ok {
			c.Serving[sid.Triple{Service: id, Proto: sid.Proto(key.Proto), Port: serverPort(key, out)}]++
		}
		return true
	})
	return c, err
}

// serverPort is the port of the instance; the key of a datagram flow ignores it.
func serverPort(key *edgeFlowKey, out *edgeEgressFlow) uint16 {
	if key.Lport != [2]byte{} {
		return binary.BigEndian.Uint16(key.Lport[:])
	}
	return binary.BigEndian.Uint16(out.Lport[:])
}

func (e *Edge) flow(key *edgeFlowKey, out *edgeEgressFlow, slots *[8]edgeSlot) Flow {
	f := e.sender(key, out, slots)
	f.LastSeen = max(f.LastSeen, e.heard(out))
	return f
}

// sender is what the egress entry alone tells of the flow.
func (e *Edge) sender(key *edgeFlowKey, out *edgeEgressFlow, slots *[8]edgeSlot) Flow {
	t := tupleOf(key)
	f := Flow{
		ID:       sid.SocketID(binary.BigEndian.Uint64(out.Socket[:])),
		Role:     Role(out.Role),
		Proto:    t.Proto,
		Local:    t.Local,
		Peer:     t.Remote,
		State:    State(out.State),
		LastSeen: out.Seen,
		Tuple:    t,
		Birth:    sid.SocketID(binary.BigEndian.Uint64(out.Birth[:])),
		Stable:   netip.AddrFrom16(out.Stable),
		Untold:   out.Watch&watchUntold != 0 && out.Told == 0,
		born:     out.Born,
	}
	if f.Role == Server {
		f.Local, f.Stable = netip.AddrPortFrom(t.Local.Addr(), serverPort(key, out)), t.Remote.Addr()
	}
	if ended(out.End) {
		f.State = Closing
	}
	f.WirePeer = netip.AddrPortFrom(netip.AddrFrom16(out.Peer), f.Peer.Port())
	if int(out.Slot) < len(slots) {
		s := &slots[out.Slot]
		f.Locator, f.Uplink = s.locator(), int(s.Ifindex)
		f.WireLocal = netip.AddrPortFrom(f.Locator.Addr(uint64(f.ID)), f.Local.Port())
	}
	service := f.Local.Addr()
	if f.Role == Client {
		service = f.Peer.Addr()
	}
	f.Service, _ = e.cfg.Space.ServiceOf(service)
	return f
}

// heard is when something last arrived for the flow, under any of its socketIDs; 0: nothing is known.
func (e *Edge) heard(out *edgeEgressFlow) (last uint64) {
	e.entries(out, func(_ uint64, in *edgeIngressFlow) { last = max(last, in.Seen) })
	return last
}

// entries visits what the flow is reached by, the newest first.
func (e *Edge) entries(out *edgeEgressFlow, f func(id uint64, in *edgeIngressFlow)) {
	id := out.Newest
	for range maxAliases {
		var in edgeIngressFlow
		err := e.maps.IngressFlows.Lookup(&id, &in)
		if err != nil {
			err = e.maps.IngressHalf.Lookup(&id, &in)
		}
		if err != nil || in.Birth != out.Birth {
			return
		}
		f(binary.NativeEndian.Uint64(id[:]), &in)
		if id = in.Older; id == [8]byte{} {
			return
		}
	}
}

// maxAliases is MAX_ALIASES of abi.h.
const maxAliases = 16

func tupleOf(k *edgeFlowKey) Tuple {
	return Tuple{addrPort(k.Local, k.Lport), addrPort(k.Remote, k.Rport), sid.Proto(k.Proto), k.Guest}
}

func (t Tuple) key() edgeFlowKey {
	return edgeFlowKey{Local: t.Local.Addr().As16(), Remote: t.Remote.Addr().As16(),
		Lport: portBytes(t.Local.Port()), Rport: portBytes(t.Remote.Port()), Proto: uint8(t.Proto), Guest: t.Guest}
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
func scan[K, V any](m *ebpf.Map, f func(*K, *V) bool) error {
	keys, values := make([]K, batch), make([]V, batch)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			if !f(&keys[i], &values[i]) {
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
