package host

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// A Tuple is a flow as its socket sees it: the key of the egress map. What it must ignore is zero: the local port of a
// datagram server, the remote one of a client's pings, and of its datagrams where an older program made the flow.
type Tuple struct {
	Local, Remote netip.AddrPort
	Proto         sid.Proto
	Guest         uint16 // whose socket it is, 0: the host's own
}

// An Addr is where one end of a flow is.
type Addr struct {
	Locator sid.Locator
	Socket  sid.SocketID
}

// IP is the address as packets carry it.
func (a Addr) IP() netip.Addr { return a.Locator.Addr(uint64(a.Socket)) }

// A Verb says what a Step does to a flow.
type Verb uint8

// The verbs of abi.h.
const (
	// Accept takes packets to Local.Socket for the flow. Peer zero: from any peer address of the AS, until
	// Bind. A socketID that is accepted already only has its peer set.
	Accept Verb = 1 + iota
	// Bind sends from Local to Peer. The newest accepted socketID takes only Peer from now on; older ones
	// keep what they took until Drop. A socketID that is not accepted yet is now.
	Bind
	// Retry makes a connecting client's flow go on under Local.Socket, from Local.Locator. Earlier attempts
	// stay accepted; the one that is answered binds the flow, and an Answered event tells which. It fails
	// when the flow has been answered already: Lookup tells by whom.
	Retry
	// Block takes nothing more and swallows what is sent: the kernel believes it sent. Bind ends it.
	Block
	// Unbind makes a client's datagram flow resolve anew, under Local.Socket; zero: one of the edge's own.
	// All earlier ones are dropped. An Answered event tells when it is bound again.
	Unbind
	// Forget ends the flow: all its socketIDs become unknown.
	Forget
	// Drop ends one former socketID, Local.Socket. What still arrives for it is not answered.
	Drop
)

var verbNames = [...]string{"", "accept", "bind", "retry", "block", "unbind", "forget", "drop"}

func (v Verb) String() string {
	if int(v) < len(verbNames) && v > 0 {
		return verbNames[v]
	}
	return fmt.Sprintf("Verb(%d)", uint8(v))
}

// A Step changes one flow.
type Step struct {
	Verb        Verb
	Flow        Tuple
	Birth       sid.SocketID // of the flow that is meant: a later one of the same tuple is left alone; 0: any
	Local, Peer Addr
}

// Steer does the steps in order. Those that fail (the flow is gone, or full is full) are listed by index and
// the others are done all the same; the error says that those from there on were not. What is done is done in
// the entries in place, beside the packets that pass.
func (e *Edge) Steer(steps []Step) (failed []int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	slots, err := e.slots()
	if err != nil {
		return nil, fmt.Errorf("host edge: steer: read the uplinks: %w", err)
	}
	for start := 0; start < len(steps); start += maxSteps {
		part := steps[start:min(start+maxSteps, len(steps))]
		bad, err := e.steer(part, &slots)
		if err != nil {
			return failed, fmt.Errorf("host edge: steer %d flows from step %d on: %w", len(steps), start, err)
		}
		for _, i := range bad {
			failed = append(failed, start+i)
		}
	}
	return failed, nil
}

// maxSteps is MAX_STEPS of abi.h: packets of this CPU wait for the steps of one run.
const maxSteps = 256

// steer does one batch. The caller holds e.mu.
func (e *Edge) steer(steps []Step, slots *[8]edgeSlot) (failed []int, err error) {
	keys, values := make([]uint32, len(steps)), make([]edgeStep, len(steps))
	for i := range steps {
		keys[i], values[i] = uint32(i), steps[i].raw(slots)
	}
	if _, err := e.maps.Steps.BatchUpdate(keys, values, nil); err != nil {
		return nil, fmt.Errorf("write steps: %w", err)
	}
	run := ebpf.RunOptions{Data: make([]byte, ethernetLen+ip6Len), Context: steerContext{Mark: uint32(len(steps))}, Repeat: 1}
	if _, err := e.programs[ethernetLen].EdgeSteer.Run(&run); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	var cursor ebpf.MapBatchCursor
	if _, err := e.maps.Steps.BatchLookup(&cursor, keys, values, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("read results: %w", err)
	}
	for i := range values {
		if values[i].Result != 0 {
			failed = append(failed, i)
		}
	}
	return failed, nil
}

// steerContext is struct __sk_buff of linux/bpf.h as far as it is used.
type steerContext struct {
	Len, PacketType uint32
	Mark            uint32
	Rest            [45]uint32
}

// noSlot is NO_SLOT of abi.h.
const noSlot = 0xff

func (s *Step) raw(slots *[8]edgeSlot) edgeStep {
	r := edgeStep{Key: s.Flow.key(), Verb: uint8(s.Verb), Slot: noSlot, Socket: half(uint64(s.Local.Socket)),
		Birth: half(uint64(s.Birth)), Result: -int32(unix.EIO)}
	if s.Verb == Unbind && s.Local.Socket == 0 {
		var random [8]byte
		rand.Read(random[:]) // never fails
		r.Socket = half(uint64(sid.NewSocketID(binary.BigEndian.Uint64(random[:]))))
	}
	if s.Peer != (Addr{}) && s.Verb != Unbind { // whoever answers is the peer
		r.Peer = s.Peer.IP().As16()
	}
	for i := range slots {
		if s.Local.Locator != 0 && slots[i].locator() == s.Local.Locator {
			r.Slot = uint8(i)
		}
	}
	return r
}
