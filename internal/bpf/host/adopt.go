package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/bpf/features"
	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// An Adoption is a connection of another instance with which one of this host goes on, docs/protocol.md §6.5.
type Adoption struct {
	Flow        Tuple // as the new socket will see it: service address and port, stable identifier and client's port
	Local, Peer Addr
	Transport   wire.Transport
}

// adoptLimit is how long the client may take to begin.
const adoptLimit = 10 * time.Second

// leastMSS is what the kernel wants of a handshake that it is given.
const leastMSS = 1220

// CanAdopt says why this host cannot continue connections of others, nil where it can. It belongs to the
// network namespace of the calling thread.
func (e *Edge) CanAdopt() error {
	if err := features.Adoption(); err != nil {
		return fmt.Errorf("host edge: adopt connections of others: %w", err)
	}
	return nil
}

// Adopt enters the flow and lets the client's next acknowledgement, which Nudge sends, become an accepted
// connection of the service's listener. Until then all else of the flow is dropped. It may be repeated; where
// the client does not begin within 10 s the flow ends. A socket that this host still has of the same
// connection must be reset before.
func (e *Edge) Adopt(a Adoption) error {
	if err := e.adoptable(a); err != nil {
		return fmt.Errorf("host edge: adopt %v from %v: %w", a.Flow.Local, a.Flow.Remote, err)
	}
	known, err := e.knows(a)
	if err != nil || known {
		return err
	}
	if _, err := e.Steer([]Step{{Verb: Forget, Flow: a.Flow}}); err != nil {
		return err
	}
	if err := e.enter(a); err != nil {
		return fmt.Errorf("host edge: adopt %v from %v: %w", a.Flow.Local, a.Flow.Remote, err)
	}
	return nil
}

// adoptable looks at what would fail later.
func (e *Edge) adoptable(a Adoption) error {
	t := &a.Transport
	switch _, err := e.slotOf(a.Local.Locator); {
	case err != nil:
		return err
	case a.Flow.Proto != sid.TCP:
		return fmt.Errorf("%v has no connections", a.Flow.Proto)
	case t.MSS < leastMSS:
		return fmt.Errorf("segments of at most %d bytes, the kernel wants %d", t.MSS, leastMSS)
	case t.ClientScale > 14 || t.ServerScale > 14:
		return fmt.Errorf("window scales %d and %d, RFC 7323 §2.3 allows 14", t.ClientScale, t.ServerScale)
	case a.Flow.Local.Port() != t.ServerPort || a.Flow.Remote.Port() != t.ClientPort:
		return errors.New("its ports are not those of its transport")
	}
	return nil
}

// knows reports whether the flow has been adopted under that socketID.
func (e *Edge) knows(a Adoption) (bool, error) {
	var in edgeIngressFlow
	err := e.maps.IngressFlows.Lookup(network(uint64(a.Local.Socket)), &in)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("host edge: look up flow %v: %w", a.Local.Socket, err)
	}
	if in.Key != a.Flow.key() {
		return false, fmt.Errorf("host edge: adopt: %v is the socketID of another flow", a.Local.Socket)
	}
	return true, nil
}

// slotOf is the index of the slot that has the locator.
func (e *Edge) slotOf(l sid.Locator) (uint8, error) {
	slots, err := e.slots()
	if err != nil {
		return 0, err
	}
	for i := range slots {
		if slots[i].locator() == l && l != 0 {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("%v is no locator of this host", l)
}

// enter writes the flow, the way out last: no packet leaves before it could be answered.
func (e *Edge) enter(a Adoption) error {
	slot, err := e.slotOf(a.Local.Locator)
	if err != nil {
		return err
	}
	var p edgePolicy
	if err := e.maps.Policies.Lookup(a.Flow.Local.Addr().As16(), &p); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	id, key, now := half(uint64(a.Local.Socket)), a.Flow.key(), ktime.Now()
	in := edgeIngressFlow{Key: key, Peer: a.Peer.IP().As16(), Seen: now, State: uint32(BoundFlow), Role: uint8(Server),
		Lport: key.Lport, AltPort: key.Lport, Datagrams: p.Datagrams, Slot: slot, Birth: id, Watch: watchAdopt}
	out := edgeEgressFlow{Socket: id, Peer: in.Peer, Seen: now, State: in.State, Role: in.Role, Proto: key.Proto,
		AltPort: key.Lport, Lport: key.Lport, Dscp: p.Dscp, Datagrams: p.Datagrams, Slot: slot,
		Newest: id, Birth: id, Watch: watchAdopt, Born: bornAt(now)}
	number := network(uint64(a.Local.Socket))
	if err := errors.Join(e.maps.Adoptions.Put(number, a.raw(now)), e.maps.IngressFlows.Put(number, &in), e.maps.EgressFlows.Put(&key, &out)); err != nil {
		return err
	}
	e.peers.note(&key, out.Role, 1)
	return nil
}

// Bits of enum watch and enum adopt_options.
const (
	watchAdopt = 1
	watchDrain = 2
	watchHear  = 4

	watchUntold = 8

	adoptSACK       = 1
	adoptTimestamps = 2
	adoptScales     = 4
)

func (a *Adoption) raw(now uint64) *edgeAdoption {
	t := &a.Transport
	r := &edgeAdoption{Until: now + uint64(adoptLimit), Seq: bytes4(t.SndUna), Ack: bytes4(t.RcvNxt), Tsval: t.TSVal,
		Tsecr: t.TSEcr, Mss: t.MSS, ClientScale: t.ClientScale, ServerScale: t.ServerScale}
	for bit, set := range map[uint8]bool{adoptSACK: t.SACK, adoptTimestamps: t.Timestamps, adoptScales: t.Scales} {
		if set {
			r.Options |= bit
		}
	}
	return r
}

// bytes4 is a number as it lies in a packet.
func bytes4(v uint32) [4]byte { return [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)} }

// overdue ends the flows whose client did not begin.
func (e *Edge) overdue(now uint64) error {
	var late []uint64
	err := scan(e.maps.Adoptions, func(id *uint64, a *edgeAdoption) bool {
		if a.Until < now {
			late = append(late, *id)
		}
		return true
	})
	if err != nil {
		return err
	}
	for _, id := range late {
		if err := e.giveUp(id); err != nil {
			return err
		}
	}
	return nil
}

func (e *Edge) giveUp(id uint64) error {
	var in edgeIngressFlow
	if err := e.maps.IngressFlows.Lookup(id, &in); err == nil && in.Watch&watchAdopt != 0 {
		if _, err := e.Steer([]Step{{Verb: Forget, Flow: tupleOf(&in.Key)}}); err != nil {
			return err
		}
	}
	if err := e.maps.Adoptions.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("host edge: give up an adoption: %w", err)
	}
	return nil
}
