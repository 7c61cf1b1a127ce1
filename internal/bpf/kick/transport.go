package kick

import (
	"errors"
	"fmt"
	"time"

	"scaffold.dev/scaffold/wire"
)

// ErrStuck is in the error of Transport for a connection that only its own two ends can go on with.
var ErrStuck = errors.New("the connection cannot continue at another instance")

// leastMSS is what a kernel adopts a connection with: a segment in the smallest packet that every link carries.
const leastMSS = 1280 - ip6Len - tcpLen

// timestampLen is what the option takes of each segment, padding included.
const timestampLen = 12

// Transport is what another instance needs to go on as this socket's peer, docs/protocol.md §6.5, and an
// error that is ErrStuck where it could not. Nothing of the old peer may arrive after the look: block the
// flow first. A FIN that is not acknowledged is no hindrance, it is sent again to the new peer, nor is urgent
// data, which is marked again with it.
func (s *Socket) Transport() (wire.Transport, error) {
	if why := s.stuck(); why != "" {
		return wire.Transport{}, fmt.Errorf("%v: %w: %s", s.Tuple, ErrStuck, why)
	}
	t := wire.Transport{
		ClientPort: s.Local.Port(), ServerPort: s.Peer.Port(),
		SACK: s.SACK, Timestamps: s.Timestamps, Scales: s.WindowScale,
		MSS: uint16(s.offeredMSS()), SndUna: s.SndUna, RcvNxt: s.RcvNxt,
		Sent: s.BytesAcked - 1, Received: s.BytesReceived, // the SYN is no byte of the stream
	}
	if s.WindowScale {
		t.ClientScale, t.ServerScale = s.RcvShift, s.SndShift
	}
	if s.Timestamps {
		t.TSVal, t.TSEcr = s.timestamp(), s.TSRecent
	}
	return t, nil
}

// stuck says why the state of the connection is not one that a new peer can take up.
func (s *Socket) stuck() string {
	switch {
	case !s.Sequenced:
		return "this kernel does not tell its sequence numbers"
	case s.State != Established && s.State != FinWait1:
		return "one of its ends has closed (" + s.State.String() + ")"
	case s.Gaps:
		return "bytes of the old instance have arrived behind a gap"
	case s.Repair:
		return "somebody holds its socket in TCP_REPAIR"
	case s.MPTCP:
		return "it is part of a Multipath TCP connection"
	case s.offeredMSS() < leastMSS:
		return fmt.Sprintf("its segments are limited to %d bytes, less than %d", s.offeredMSS(), leastMSS)
	case s.BytesAcked == 0:
		return "its own SYN is not acknowledged"
	}
	return ""
}

// offeredMSS is what the peer may send: what our SYN said, unless the path is known to be narrower.
func (s *Socket) offeredMSS() uint32 {
	mss := s.AdvMSS
	if s.Timestamps {
		mss += timestampLen
	}
	return min(mss, s.MSSClamp, 1<<16-1)
}

// timestamp is what the socket would have sent as its own at the look, RFC 7323 §3.
func (s *Socket) timestamp() uint32 {
	unit := time.Millisecond
	if s.TSMicros {
		unit = time.Microsecond
	}
	return uint32(s.At/unit) + s.TSOffset
}

// Window is the window field of a segment that the socket would send now: what is left of the window that it
// has told.
func (s *Socket) Window() uint16 {
	left := int32(s.RcvWup + s.RcvWnd - s.RcvNxt)
	return uint16(min(uint32(max(left, 0))>>s.RcvShift, 1<<16-1))
}
