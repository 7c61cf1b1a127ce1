package kick

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A Result counts what one Kick, or one Reset, did.
type Result struct {
	Found    int // sockets of the connections that were asked for
	Idle     int // of these with nothing to send: left alone
	Waiting  int // left alone though they have something to send: no kick helps, see need
	Pending  int // kicked: data was in flight and the timer backed off
	Stuck    int // kicked: nothing could be sent at all
	Refusals int // ICMPv6 messages given to sockets
	Acks     int // duplicate acknowledgements given to sockets
	Resets   int // resets given to sockets
}

// A need is what one socket must be given: that many ICMPv6 messages, then an acknowledgement.
type need struct {
	refusals int
	ack      bool
}

// needOf decides. Idle sockets, those that still connect (the refusal would end the attempt) and those
// whose first timeout is yet to come need, or can be given, nothing: a refusal takes back only what a
// timeout has added. Where bytes are queued beside a window probe it is not certain which of the two
// states the kernel will be in when the packets arrive, so it gets both. Where the peer's window is closed an
// acknowledgement sends nothing, and puts the probe off that would find it open: kicked again and again, a connection
// whose peer's last word was lost would hang for ever.
func needOf(s *Socket) need {
	if !s.State.synchronized() || s.Repair {
		return need{}
	}
	var n need
	if s.InFlight() != 0 && s.Backoff > 0 && s.Retransmits > 0 && !s.ReadsICMP {
		n.refusals = int(s.Backoff) + 1
	}
	n.ack = s.Queued() != 0 && (s.InFlight() == 0 || s.Timer == WindowProbe) && s.fits()
	return n
}

// least is what makes the connection send once. Each refusal takes a doubling back; the first after which the timeout
// lies in the past has the kernel send at once, and those that follow only see to it that it tries again soon.
func (n need) least(s *Socket) need {
	if s.Timer != Retransmit || s.RTO <= s.Due {
		return n
	}
	since := s.RTO - max(0, s.Due)
	for i := 1; i < n.refusals; i++ {
		if s.RTO>>i+jitter < since {
			return need{i, n.ack}
		}
	}
	return n
}

// jitter is how much less than the look says may have passed since the last try: the kernel counts both in jiffies,
// of a hundredth of a second at most.
const jitter = 20 * time.Millisecond

// Kick makes the given connections send now what waits for a timer; nil means all of the namespace. It is
// called once the path is there again: kicked into nothing, a connection is back where it was. A
// connection that is idle is not touched. Each retransmission is at least the undoubled timeout after the
// one before, which is up to the route's rto_min (RFC 6298 §2.4) and the round trip.
func (k *Kicker) Kick(want Set) (Result, error) { return k.KickSeen(want, func(*Socket) {}) }

// KickSeen is Kick; it shows each connection as it was just before. The socket is seen's until it returns. Of many
// connections each is given no more than it takes to send once.
func (k *Kicker) KickSeen(want Set, seen func(*Socket)) (Result, error) {
	var r Result
	if k.lost != nil {
		return r, fmt.Errorf("kick: %w: %w", ErrBlind, k.lost)
	}
	kick := func(s *Socket) error { seen(s); return k.kick(s, needOf(s), &r) }
	if len(want) > few {
		kick = func(s *Socket) error { seen(s); return k.kick(s, needOf(s).least(s), &r) }
		rest, err := k.eachMany(want, kick)
		if err != nil || len(rest) == 0 {
			return r, err
		}
		want = rest
	}
	return r, k.each(want, kick)
}

func (k *Kicker) kick(s *Socket, n need, r *Result) error {
	r.Found++
	switch {
	case n.refusals > 0:
		r.Pending++
	case n.ack:
		r.Stuck++
	case s.InFlight() == 0 && s.Queued() == 0:
		r.Idle++
	default:
		r.Waiting++
	}
	var packet [packetLen]byte
	if n.refusals > 0 {
		b := appendNoRoute(packet[:0], s)
		for range n.refusals {
			if err := k.inject(b, s); err != nil {
				return err
			}
			r.Refusals++
		}
	}
	if !n.ack {
		return nil
	}
	r.Acks++
	return k.inject(appendAck(packet[:0], s), s)
}

// Reset ends the given connections (nil would be all: it is refused) as if the peer had: their programs
// get ECONNRESET, which they know to retry on, within a millisecond. Nothing is sent to the network.
// A connection that moves on while it is read survives; State shows it.
func (k *Kicker) Reset(want Set) (Result, error) {
	var r Result
	if want == nil {
		return r, fmt.Errorf("kick: reset: name the connections")
	}
	if k.lost != nil {
		return r, fmt.Errorf("kick: reset: %w: %w", ErrBlind, k.lost)
	}
	err := k.each(want, func(s *Socket) error {
		r.Found++
		if !s.State.synchronized() {
			return nil
		}
		r.Resets++
		var packet [packetLen]byte
		return k.inject(appendReset(packet[:0], s), s)
	})
	return r, err
}

// inject gives a packet to the socket. The call waits where too much is on its way already.
func (k *Kicker) inject(packet []byte, s *Socket) error {
	to := unix.SockaddrInet6{Addr: s.Local.Addr().As16()}
	for {
		err := unix.Sendto(k.raw, packet, 0, &to)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("kick %v: give it a packet of %d bytes: %w", s.Tuple, len(packet), err)
		}
		return nil
	}
}
