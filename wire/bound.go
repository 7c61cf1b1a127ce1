package wire

import (
	"encoding/binary"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// Bound gives the client's edge of a one-way datagram flow the server's socketID.
//
//	+---------------------------------------------------------------+
//	|                      server's socketID                        |
//	|                                                               |
//	+---------------------------------------------------------------+
type Bound struct {
	Header
	Socket sid.SocketID
}

const boundLen = 8

// Type is TypeBound.
func (Bound) Type() Type { return TypeBound }

// Append implements Message.
func (m Bound) Append(b []byte) []byte {
	b = m.Header.append(b, TypeBound, boundLen)
	return binary.BigEndian.AppendUint64(b, uint64(m.Socket))
}

func parseBound(h Header, body []byte) (Message, error) {
	if err := exactly(body, boundLen); err != nil {
		return nil, err
	}
	s := sid.SocketID(binary.BigEndian.Uint64(body))
	if !s.Valid() {
		return nil, fmt.Errorf("%v is no socketID: its top bit is clear", s)
	}
	return Bound{Header: h, Socket: s}, nil
}
