package wire

import (
	"encoding/binary"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// Resume asks an instance that never met the client to continue a flow, docs/protocol.md §6.5. It is
// the unresolved RSYN, to the service's address and with no socketID quoted, and then the RACK, to
// the instance that answered and quoting its socketID: the instance keeps nothing in between, so both
// say everything.
//
//	+---------------------------------------------------------------+
//	|                       client's locator                        |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|  client's claim ...                                           |
//	+---------------------------------------------------------------+
//	|                            ssID                               |
//	+---------------------------------------------------------------+
//	|                       service's suffix                        |
//	|                                                               |
//	+---------------+---------------+---------------+---------------+
//	|   protocol    |flags W   T  K | client wscale | server wscale |
//	+---------------+---------------+---------------+---------------+
//	|         client's port         |         server's port         |
//	+-------------------------------+-------------------------------+
//	|              MSS              |               0               |
//	+-------------------------------+-------------------------------+
//	|   snd_una, rcv_nxt, timestamp, timestamp echo, 4 bytes each   |
//	+---------------------------------------------------------------+
//	|   bytes that the client has sent, and received, 8 bytes each  |
//	+---------------------------------------------------------------+
//	|  authenticity ...                                             |
type Resume struct {
	Header
	Locator   sid.Locator
	Claim     Claim
	Service   sid.ServiceID
	Proto     sid.Proto
	Transport Transport
	Auth      Auth
}

// Transport is the state of the client's TCP that a new instance continues from, in the client's own
// sequence space.
type Transport struct {
	ClientPort, ServerPort   uint16
	SACK, Timestamps, Scales bool // K, T, W: agreed on when the connection began
	ClientScale, ServerScale uint8
	MSS                      uint16
	SndUna, RcvNxt           uint32
	TSVal, TSEcr             uint32
	Sent, Received           uint64 // bytes of the stream so far that the server acknowledged; that arrived
}

const (
	resumeLen      = 8 + 12 + transportLen
	transportLen   = 44
	flagSACK       = 1 << 0
	flagTimestamps = 1 << 1
	flagScales     = 1 << 2
)

// Type is TypeResume.
func (Resume) Type() Type { return TypeResume }

// Append implements Message.
func (m Resume) Append(b []byte) []byte {
	b = m.Header.append(b, TypeResume, resumeLen+m.Claim.Len()+m.Auth.len())
	b = binary.BigEndian.AppendUint64(b, uint64(m.Locator))
	b = m.Claim.append(b)
	b = binary.BigEndian.AppendUint32(b, m.Service.SS)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Service.Suffix))
	b = m.Transport.append(b, m.Proto)
	return m.Auth.append(b)
}

func (t *Transport) append(b []byte, proto sid.Proto) []byte {
	var flags byte
	for bit, set := range map[byte]bool{flagSACK: t.SACK, flagTimestamps: t.Timestamps, flagScales: t.Scales} {
		if set {
			flags |= bit
		}
	}
	b = append(b, byte(proto), flags, t.ClientScale, t.ServerScale)
	for _, v := range [...]uint16{t.ClientPort, t.ServerPort, t.MSS, 0} {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	for _, v := range [...]uint32{t.SndUna, t.RcvNxt, t.TSVal, t.TSEcr} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = binary.BigEndian.AppendUint64(b, t.Sent)
	return binary.BigEndian.AppendUint64(b, t.Received)
}

func parseResume(h Header, body []byte) (Message, error) {
	if len(body) < 8 {
		return nil, fmt.Errorf("body of %d bytes: %w", len(body), ErrLength)
	}
	claim, rest, err := parseClaim(body[8:])
	if err != nil {
		return nil, err
	}
	if len(rest) < 12+transportLen {
		return nil, fmt.Errorf("%d bytes behind the claim, want at least %d: %w", len(rest), 12+transportLen, ErrLength)
	}
	m := Resume{
		Header:  h,
		Locator: sid.Locator(binary.BigEndian.Uint64(body)),
		Claim:   claim,
		Service: sid.ServiceID{SS: binary.BigEndian.Uint32(rest), Suffix: sid.Suffix(binary.BigEndian.Uint64(rest[4:]))},
		Proto:   sid.Proto(rest[12]),
	}
	m.Transport = parseTransport(rest[12:])
	m.Auth, err = parseAuth(rest[12+transportLen:])
	return m, err
}

func parseTransport(b []byte) Transport {
	return Transport{
		SACK: b[1]&flagSACK != 0, Timestamps: b[1]&flagTimestamps != 0, Scales: b[1]&flagScales != 0,
		ClientScale: b[2], ServerScale: b[3],
		ClientPort: binary.BigEndian.Uint16(b[4:]),
		ServerPort: binary.BigEndian.Uint16(b[6:]),
		MSS:        binary.BigEndian.Uint16(b[8:]),
		SndUna:     binary.BigEndian.Uint32(b[12:]),
		RcvNxt:     binary.BigEndian.Uint32(b[16:]),
		TSVal:      binary.BigEndian.Uint32(b[20:]),
		TSEcr:      binary.BigEndian.Uint32(b[24:]),
		Sent:       binary.BigEndian.Uint64(b[28:]),
		Received:   binary.BigEndian.Uint64(b[36:]),
	}
}
