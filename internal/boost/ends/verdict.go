package ends

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// Flags of TCP.
const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagPSH = 0x08
	flagACK = 0x10
)

// A heard segment is what an end host says of where it stands.
type heard struct {
	seq, ack uint32
	flags    byte
	length   uint32 // of what takes sequence numbers: bytes, and a FIN
	window   uint16
	echo     uint32 // TSecr: the last TSval of ours that it took
	echoes   bool
}

// hear reads a packet from its IP header on; what is cut off behind the TCP header does not matter.
func hear(b []byte) (p pair, h heard, ok bool) {
	var total, l4 int
	var src, dst netip.Addr
	switch {
	case len(b) >= ip4Len && b[0]>>4 == 4 && b[9] == protoTCP && binary.BigEndian.Uint16(b[6:])&0x3fff == 0: // no fragment
		l4, total = int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
		src, dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	case len(b) >= ip6Len && b[0]>>4 == 6 && b[6] == protoTCP:
		l4, total = ip6Len, ip6Len+int(binary.BigEndian.Uint16(b[4:]))
		src, dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	default:
		return p, h, false
	}
	if l4 < ip4Len || len(b) < l4+tcpLen {
		return p, h, false
	}
	t := b[l4:]
	head := int(t[12]>>4) * 4
	if head < tcpLen || len(t) < head || total < l4+head {
		return p, h, false
	}
	h = heard{seq: binary.BigEndian.Uint32(t[4:]), ack: binary.BigEndian.Uint32(t[8:]), flags: t[13], window: binary.BigEndian.Uint16(t[14:]), length: uint32(total - l4 - head)}
	if h.flags&flagFIN != 0 {
		h.length++
	}
	h.echo, h.echoes = echoIn(t[tcpLen:head])
	return pair{local: netip.AddrPortFrom(dst, binary.BigEndian.Uint16(t[2:])), remote: netip.AddrPortFrom(src, binary.BigEndian.Uint16(t))}, h, true
}

// echoIn is TSecr of a segment's options.
func echoIn(b []byte) (uint32, bool) {
	for len(b) > 0 && b[0] != 0 {
		if b[0] == 1 {
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			break
		}
		if b[0] == 8 && b[1] == 10 {
			return binary.BigEndian.Uint32(b[6:]), true
		}
		b = b[b[1]:]
	}
	return 0, false
}

// A verdict is what is known of an end host after a segment of it.
type verdict uint8

const (
	unknown verdict = iota // it says nothing of what matters
	again                  // it is to be asked once more
	goesOn                 // all that it sent and has had acknowledged is at the other agent, and what it lacks, too
	lost                   // not so: bytes are nowhere
	gone                   // it has no such connection
)

// proves is how long an end host that was heard may take to prove that it has all that the other agent lacks: what it sends
// again comes after 200 ms and more.
const proves = time.Second

// A judge finds out from what an end host says whether its connection can go on. It is pure: times are arguments.
type judge struct {
	ask   frame.Takeover
	first time.Time // when it was heard; zero: it was not
	last  heard     // of those that say what it has received

	answers int  // how often it has said in turn that it has sent nothing beyond what the other agent has
	beyond  bool // it has said that it has
}

// sequence is the number of the byte at an offset of what the end host receives, expects that of what it sends.
func (j *judge) sequence(offset uint64) uint32 { return j.ask.Own.Sequence + 1 + uint32(offset) }
func (j *judge) expects() uint32               { return j.ask.Host.Sequence + 1 + uint32(j.ask.Arrived) }

// wants is what the end host has received, as an offset, after the verdict goesOn.
func (j *judge) wants() uint64 {
	return j.ask.Kept.From + uint64(j.last.ack-j.sequence(j.ask.Kept.From))
}

// take judges by one more segment.
//
// Its acknowledgement says what it has received: less than was told of is of a segment that is older than that, more than is
// kept cannot be sent. Its sequence number says what it has sent. Where that is what the other agent has, nothing was lost.
// Where it is more the lost agent may have acknowledged some of it: not so if the end host sends again, for nobody sends what
// was acknowledged. A segment without bytes has to say it twice: one of keepalive has the number before the one that is next,
// and comes of itself.
func (j *judge) take(now time.Time, h heard) verdict {
	ahead := int32(h.seq - j.expects())
	behind := int32(h.ack - j.sequence(j.ask.Kept.From))
	switch {
	case h.flags&flagRST != 0:
		if ahead == 0 || h.flags&flagACK != 0 && behind >= 0 { // it is for this connection, not one of before
			return gone
		}
		return unknown
	case h.flags&flagSYN != 0 || h.flags&flagACK == 0 || behind < 0:
		return unknown
	}
	if j.first.IsZero() {
		j.first = now
	}
	j.last = h
	switch {
	case uint64(behind) > j.ask.Kept.To-j.ask.Kept.From: // a FIN of the lost agent's, which cannot be restored, or bytes of who knows whom
		return lost
	case h.length > 0 && ahead <= 0:
		return goesOn
	case ahead > 0:
		j.beyond = true
	case ahead == 0 && !j.beyond:
		if j.answers++; j.answers == 1 {
			return again
		}
		return goesOn
	}
	return j.late(now)
}

// late is the verdict once the end host could have proved what it has.
func (j *judge) late(now time.Time) verdict {
	if !j.first.IsZero() && now.Sub(j.first) >= proves {
		return lost
	}
	return unknown
}
