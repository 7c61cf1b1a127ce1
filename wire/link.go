package wire

import (
	"encoding/binary"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// Link is what one router says to one other on a link, so that each knows that the other is there, now, at this port
// (docs/protocol.md §4.2). The key id is that of the sender's link key, the nonce is the sender's challenge for this pair of ports.
//
//	+---------------+---------------+---------------+---------------+
//	|  name length  |  port length  |  peer length  |  peer's port l|
//	+---------------+---------------+---------------+---------------+
//	|                            serial                             |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                             echo                              |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                   sending router's locator                    |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|  name ...  port name ...  peer's name ...  peer's port ...    |
//	+---------------------------------------------------------------+
//	|                         proof (16 bytes)                      |
type Link struct {
	Header
	Serial   uint64      // grows with each message of the sender
	Echo     uint64      // the challenge that the peer sent last, 0: none is known
	Locator  sid.Locator // the sender's, 0 while the controller has given none
	Name     string      // of the sender
	Port     string      // of the sender's port that the message leaves by
	Peer     string      // whom it is for
	PeerPort string      // and at which port; "": behind a router that knows nothing of Scaffold it may be any
	Proof    [ProofLen]byte
}

// ProofLen is the length of a Link's proof in bytes.
const ProofLen = 16

const linkLen = 28

// Type is TypeLink.
func (Link) Type() Type { return TypeLink }

// Append implements Message.
func (m Link) Append(b []byte) []byte {
	names := [...]string{m.Name, m.Port, m.Peer, m.PeerPort}
	n := linkLen + ProofLen
	for i, what := range [...]string{"router name", "port name", "peer's name", "peer's port name"} {
		checkName(what, names[i])
		n += len(names[i])
	}
	b = m.Header.append(b, TypeLink, n)
	for _, name := range names {
		b = append(b, byte(len(name)))
	}
	b = binary.BigEndian.AppendUint64(b, m.Serial)
	b = binary.BigEndian.AppendUint64(b, m.Echo)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Locator))
	for _, name := range names {
		b = append(b, name...)
	}
	return append(b, m.Proof[:]...)
}

// Proven appends what the proof is over: the message without it.
func (m Link) Proven(b []byte) []byte {
	b = m.Append(b)
	return b[:len(b)-ProofLen]
}

func parseLink(h Header, body []byte) (Message, error) {
	if len(body) < linkLen+ProofLen {
		return nil, fmt.Errorf("body of %d bytes, want at least %d: %w", len(body), linkLen+ProofLen, ErrLength)
	}
	n := linkLen + ProofLen
	for _, length := range body[:4] {
		n += int(length)
	}
	if err := exactly(body, n); err != nil {
		return nil, err
	}
	m := Link{Header: h, Serial: binary.BigEndian.Uint64(body[4:]), Echo: binary.BigEndian.Uint64(body[12:]),
		Locator: sid.Locator(binary.BigEndian.Uint64(body[20:]))}
	rest := body[linkLen:]
	for i, name := range [...]*string{&m.Name, &m.Port, &m.Peer, &m.PeerPort} {
		*name, rest = string(rest[:body[i]]), rest[body[i]:]
	}
	copy(m.Proof[:], rest)
	return m, nil
}
