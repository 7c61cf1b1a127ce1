package kick

import (
	"fmt"
	"net/netip"
	"time"
)

// A Tuple names one TCP connection as its program sees it.
type Tuple struct{ Local, Peer netip.AddrPort }

// String is "local > peer".
func (t Tuple) String() string { return fmt.Sprintf("%v > %v", t.Local, t.Peer) }

// State is a connection's state, RFC 9293 §3.3.2, in the kernel's numbers.
type State uint8

// The states that a Socket can have: listeners, half-open connections and TIME_WAIT are not listed.
const (
	Established State = 1 + iota
	SynSent
	SynReceived
	FinWait1
	FinWait2
	_
	Closed
	CloseWait
	LastAck
	_
	Closing
)

var stateNames = map[State]string{
	Established: "established", SynSent: "syn-sent", SynReceived: "syn-received", FinWait1: "fin-wait-1",
	FinWait2: "fin-wait-2", Closed: "closed", CloseWait: "close-wait", LastAck: "last-ack", Closing: "closing",
}

func (s State) String() string {
	if name, ok := stateNames[s]; ok {
		return name
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// synchronized says whether both ends know each other's sequence numbers, RFC 9293 §3.4.
func (s State) synchronized() bool {
	switch s {
	case Established, FinWait1, FinWait2, CloseWait, LastAck, Closing:
		return true
	}
	return false
}

// Timer is what a connection waits for.
type Timer uint8

// The kernel's timers, in its numbers.
const (
	NoTimer      Timer = 0
	Retransmit   Timer = 1 // RFC 6298
	WindowProbe  Timer = 3 // RFC 9293 §3.8.6.1; also after a failure to send anything at all
	LossProbe    Timer = 5 // RFC 8985 §7
	ReorderTimer Timer = 6 // RFC 8985 §6.3
)

func (t Timer) String() string {
	switch t {
	case NoTimer:
		return "none"
	case Retransmit:
		return "retransmit"
	case WindowProbe:
		return "window probe"
	case LossProbe:
		return "loss probe"
	case ReorderTimer:
		return "reordering"
	}
	return fmt.Sprintf("timer %d", uint8(t))
}

// A Socket is the state of one TCP connection at one moment. Sequence numbers and windows are those of
// RFC 9293 §3.3.1, modulo 2^32; windows are in bytes, not shifted.
type Socket struct {
	Tuple
	Cookie uint64        // of the socket, 0 while nobody has asked for it
	At     time.Duration // of the look, CLOCK_MONOTONIC
	State  State

	SndUna  uint32 // first byte that the peer has not acknowledged
	SndNxt  uint32 // first byte that was never sent
	Written uint32 // end of what the program wrote: SndNxt..Written is queued
	SndWnd  uint32 // what the peer is ready to take from SndUna on
	SndWl1  uint32 // sequence number of the segment that last set SndWnd
	MaxWnd  uint32 // largest window that the peer has offered

	RcvNxt uint32 // next byte expected from the peer
	Copied uint32 // first byte that the program has not read
	RcvWup uint32 // RcvNxt when RcvWnd was last told
	RcvWnd uint32 // window last told, from RcvWup on
	Gaps   bool   // bytes beyond RcvNxt have arrived: the out-of-order queue is not empty

	SndShift, RcvShift uint8  // window scales, RFC 7323 §2: the peer's, ours; 0 unless WindowScale
	WindowScale        bool   // RFC 7323 §2
	SACK               bool   // RFC 2018
	Timestamps         bool   // RFC 7323 §3
	TSMicros           bool   // our timestamps count microseconds, else milliseconds
	TSRecent           uint32 // TS.Recent: latest timestamp of the peer
	TSEcho             uint32 // latest echo of ours
	TSOffset           uint32 // what is added to the kernel's clock for our timestamps
	MSS                uint32 // bytes in a segment that we send now, options taken off
	MSSClamp           uint32 // from the peer's MSS option, and TCP_MAXSEG
	AdvMSS             uint32 // what we told in ours

	Timer       Timer
	Due         time.Duration // until Timer fires, from At on; may be negative, by a jiffy
	Backoff     uint8         // how often the timer was doubled
	Retransmits uint8         // timeouts since the last progress
	Probes      uint8         // unanswered window probes
	RTO         time.Duration // retransmission timeout with its doublings, RFC 6298
	SRTT        time.Duration // smoothed round trip; 0 if never measured
	RTTVar      time.Duration // its variation

	Cwnd          uint32 // congestion window, segments
	PacketsOut    uint32 // segments in flight
	RetransOut    uint32 // of these sent again
	TotalRetrans  uint32 // segments sent again in the whole life
	BytesAcked    uint64 // of ours, in the whole life; our SYN counts as one
	BytesReceived uint64 // in order, in the whole life

	Congestion uint8 // 0 open, 1 disorder, 2 reduced, 3 recovery, 4 loss: the kernel's tcp_ca_state
	ReadsICMP  bool  // the program asked for ICMPv6 errors (IPV6_RECVERR): it would see a kick as one
	Repair     bool  // somebody holds it in TCP_REPAIR
	MPTCP      bool  // part of a Multipath TCP connection, RFC 8684

	// Sequenced says that sequence numbers, RcvWnd and timestamps are known. They are not where the
	// kernel cannot run iter/tcp programs (see Kicker.Lost): they count from zero then, and only their
	// differences mean anything.
	Sequenced bool
}

// String tells what the connection waits for.
func (s Socket) String() string {
	return fmt.Sprintf("%v %v: %d bytes in flight, %d queued, %v timer due in %v, doubled %d times, %d retransmissions, rto %v",
		s.Tuple, s.State, s.InFlight(), s.Queued(), s.Timer, s.Due, s.Backoff, s.Retransmits, s.RTO)
}

// InFlight is how many bytes (a FIN counts as one) were sent and not acknowledged.
func (s *Socket) InFlight() uint32 { return s.SndNxt - s.SndUna }

// Queued is how many bytes the program wrote that were never sent.
func (s *Socket) Queued() uint32 { return s.Written - s.SndNxt }

// fits says whether the peer's window has room for the segment that is next.
func (s *Socket) fits() bool {
	room := int32(s.SndUna + s.SndWnd - s.SndNxt)
	return room > 0 && uint32(room) >= min(s.MSS, s.Queued())
}

// Unread is how many bytes have arrived in order that the program has not read.
func (s *Socket) Unread() uint32 { return s.RcvNxt - s.Copied }
