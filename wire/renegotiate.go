package wire

import (
	"encoding/binary"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// Renegotiate is an RSYN, RSYN-ACK or RACK, docs/protocol.md §6.3: where the sender's ends of some
// flows are, all of them between the same two hosts.
//
//	+---------------------------------------------------------------+
//	|                   sender's locator, new                       |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|     sender's locator that the receiver confirmed last         |
//	|                                                               |
//	+---------------+-----------------------------------------------+
//	|   claims n    |                       0                       |
//	+---------------+-----------------------------------------------+
//	|  n claims ...                                                 |
//	|  authenticity ...                                             |
type Renegotiate struct {
	Header
	Kind    Type // TypeRSYN, TypeRSYNACK or TypeRACK
	Locator sid.Locator
	Old     sid.Locator
	Claims  []Claim // 1 to 255, as many as Room leaves
	Auth    Auth
}

const renegotiateLen = 20

// Room is how many bytes of claims fit beside the given number of certificates.
func Room(certificates int) int {
	return MaxLen - HeaderLen - renegotiateLen - authLen - certificates*CertificateLen - signatureLen
}

// Type is the message's Kind.
func (m Renegotiate) Type() Type { return m.Kind }

// Append implements Message.
func (m Renegotiate) Append(b []byte) []byte {
	body := renegotiateLen + m.Auth.len()
	for i := range m.Claims {
		body += m.Claims[i].Len()
	}
	b = m.Header.append(b, m.Kind, body)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Locator))
	b = binary.BigEndian.AppendUint64(b, uint64(m.Old))
	b = append(b, byte(len(m.Claims)), 0, 0, 0)
	for i := range m.Claims {
		b = m.Claims[i].append(b)
	}
	return m.Auth.append(b)
}

func parseRenegotiate(t Type, h Header, body []byte) (Message, error) {
	if len(body) < renegotiateLen {
		return nil, fmt.Errorf("body of %d bytes, want at least %d: %w", len(body), renegotiateLen, ErrLength)
	}
	m := Renegotiate{
		Header:  h,
		Kind:    t,
		Locator: sid.Locator(binary.BigEndian.Uint64(body)),
		Old:     sid.Locator(binary.BigEndian.Uint64(body[8:])),
	}
	n, rest := int(body[16]), body[renegotiateLen:]
	for range n {
		c, more, err := parseClaim(rest)
		if err != nil {
			return nil, err
		}
		m.Claims, rest = append(m.Claims, c), more
	}
	if n == 0 {
		return nil, fmt.Errorf("no claims: %w", errClaim)
	}
	auth, err := parseAuth(rest)
	m.Auth = auth
	return m, err
}
