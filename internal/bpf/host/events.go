package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// A Kind of event.
type Kind uint8

// The kinds of abi.h.
const (
	Refused Kind = 1 // the network refused a connecting flow: TCP, or UDP with code 4; see Refusals
	Message Kind = 2 // a message between host stacks, docs/protocol.md §4 and §6

	Stray    Kind = 3 // a packet for a socketID that nobody knows; the sender is to be told by FAIL
	Answered Kind = 4 // an attempt of a flow that Steer retried or unbound, To, was answered by the peer, From
	Died     Kind = 5 // the process behind a flow that may continue elsewhere died
)

// An Event is a packet on which the daemon must act.
type Event struct {
	Kind    Kind
	Code    uint8 // ICMPv6 code of a refusal
	Ifindex uint32
	At      uint64       // CLOCK_MONOTONIC, ns
	ID      sid.SocketID // the flow's, 0 when there is none
	Proto   sid.Proto
	Local   netip.AddrPort // as the program sees it
	Peer    netip.AddrPort
	Tuple   Tuple  // the flow, zero when there is none
	ISN     uint32 // of the SYN that was refused
	Refuser uint16 // number of the host whose kernel reset it, or to which there is no way; 0 where a router or an edge refused
	From    netip.Addr
	To      netip.Addr // of Packet
	Packet  []byte     // IPv6; of a refusal as the kernel is to read it, else as it came
}

// BeatEvery is how often the daemon shows that it reads; the programs give up on it after a second.
const BeatEvery = 250 * time.Millisecond

// ReadEvent blocks until there is an event. While somebody waits here, the programs hand refusals and messages
// over; otherwise they go straight to the kernel. After Close it returns io.EOF.
func (e *Edge) ReadEvent() (Event, error) {
	for {
		if now := time.Now(); now.Sub(e.beaten) >= BeatEvery/2 { // in a great move an event comes every 100 µs
			if err := e.Beat(); err != nil {
				return Event{}, io.EOF
			}
			e.beaten = now
		}
		e.ring.SetDeadline(time.Now().Add(BeatEvery))
		record, err := e.ring.Read()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case errors.Is(err, ringbuf.ErrClosed):
			return Event{}, io.EOF
		case err != nil:
			return Event{}, fmt.Errorf("host edge: read event: %w", err)
		}
		if ev, ok := parseEvent(record.RawSample); ok {
			return ev, nil
		}
	}
}

// Unread reports whether there are events that ReadEvent has not returned yet.
func (e *Edge) Unread() bool { return e.ring.AvailableBytes() > 0 }

// Beat tells the programs that events are read, or soon will be; ReadEvent does so by itself. Only Go writes the
// configuration.
func (e *Edge) Beat() error {
	var c edgeHostConfig
	if err := e.maps.Config.Lookup(uint32(0), &c); err != nil {
		return err
	}
	c.Heartbeat = ktime.Now()
	return e.maps.Config.Put(uint32(0), &c)
}

func parseEvent(raw []byte) (Event, bool) {
	var h edgeEvent
	size := int(unsafe.Sizeof(h))
	if len(raw) < size || binary.Read(bytes.NewReader(raw[:size]), binary.NativeEndian, &h) != nil {
		return Event{}, false
	}
	packet := raw[size:]
	if len(packet) < int(h.Len) {
		return Event{}, false
	}
	ev := Event{
		Kind:    Kind(h.Kind),
		Code:    h.Code,
		Ifindex: h.Ifindex,
		At:      h.At,
		ID:      sid.SocketID(binary.BigEndian.Uint64(h.Socket[:])),
		Proto:   sid.Proto(h.Key.Proto),
		Local:   addrPort(h.Key.Local, h.Key.Lport),
		Peer:    addrPort(h.Key.Remote, h.Key.Rport),
		ISN:     binary.BigEndian.Uint32(h.Isn[:]),
		Refuser: h.Refuser,
		Packet:  packet[:h.Len:h.Len],
	}
	if h.Key != (edgeFlowKey{}) {
		ev.Tuple = tupleOf(&h.Key)
	}
	if len(ev.Packet) >= ip6Len {
		ip := header.IPv6(ev.Packet)
		ev.From, ev.To = ip.Src(), ip.Dst()
	}
	return ev, true
}
