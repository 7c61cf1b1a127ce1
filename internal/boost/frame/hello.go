package frame

import "encoding/binary"

const (
	helloLen = 56
	// magic tells a HELLO from what other programs say first: "SCBF".
	magic = 0x53434246
	// MACLen is the size in bytes of a HELLO's MAC.
	MACLen = 16
	// HelloLen is the size in bytes of a whole HELLO: from a connection nobody reads more before its MAC is verified.
	HelloLen = HeaderLen + helloLen
)

// A Use is what a connection of a trunk is for.
type Use uint8

// The uses of connections.
const (
	Control Use = 1 // mutual TLS; the keys of the data connections come from it
	Data    Use = 2
)

// Hello is the first frame on every connection of a trunk, both ways. Its offset is 0.
//
//	+---------------------------------------------------------------+
//	|                     magic = 0x53434246                        |
//	+---------------------------------------------------------------+
//	|                 lowest version that is spoken                 |
//	+---------------------------------------------------------------+
//	|                 highest version that is spoken                |
//	+---------------+---------------+-------------------------------+
//	|      use      |  protection   |               0               |
//	+---------------+---------------+-------------------------------+
//	|                             trunk                             |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                          incarnation                          |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                          connection                           |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                         MAC, 16 bytes                         |
//	:                                                               :
//	+---------------------------------------------------------------+
type Hello struct {
	// From and To are the versions that are spoken, both ends included. Who is called answers with the one that it has
	// chosen in both (internal/api/versions, Trunk).
	From, To    uint32
	Use         Use
	Protection  Protection
	Trunk       uint64 // the agent that began the trunk drew the number
	Incarnation uint64 // of the sender's worker; one that began later has a higher number
	Connection  uint64 // of this connection in its trunk; no number comes twice
	// MAC is that of all bytes before it, under a key of the trunk. On the control connection, which is TLS, it is zero.
	MAC [MACLen]byte
}

// AppendClaim writes behind b what the MAC is of: the frame without its last MACLen bytes.
func (m *Hello) AppendClaim(b []byte) []byte {
	b = Header{Type: TypeHello, Length: helloLen}.Append(b)
	b = binary.BigEndian.AppendUint32(b, magic)
	b = binary.BigEndian.AppendUint32(b, m.From)
	b = binary.BigEndian.AppendUint32(b, m.To)
	b = append(b, byte(m.Use), byte(m.Protection), 0, 0)
	b = binary.BigEndian.AppendUint64(b, m.Trunk)
	b = binary.BigEndian.AppendUint64(b, m.Incarnation)
	return binary.BigEndian.AppendUint64(b, m.Connection)
}

// Append writes the frame behind b.
func (m *Hello) Append(b []byte) []byte { return append(m.AppendClaim(b), m.MAC[:]...) }

// ParseHello reads the payload of a HELLO.
func ParseHello(h Header, b []byte) (Hello, error) {
	if err := h.payload(TypeHello, b); err != nil {
		return Hello{}, err
	}
	if got := binary.BigEndian.Uint32(b); got != magic {
		return Hello{}, h.wrong("magic", got, "1396916806: the peer is no boost agent")
	}
	m := Hello{
		From: binary.BigEndian.Uint32(b[4:]), To: binary.BigEndian.Uint32(b[8:]),
		Use: Use(b[12]), Protection: Protection(b[13]),
		Trunk: binary.BigEndian.Uint64(b[16:]), Incarnation: binary.BigEndian.Uint64(b[24:]), Connection: binary.BigEndian.Uint64(b[32:]),
		MAC: [MACLen]byte(b[40:]),
	}
	switch {
	case h.Offset != 0:
		return Hello{}, h.wrong("offset", h.Offset, "0")
	case m.From == 0:
		return Hello{}, h.wrong("lowest version", 0, "at least 1")
	case m.To < m.From:
		return Hello{}, h.wrong("highest version", m.To, "no less than the lowest")
	case m.Use != Control && m.Use != Data:
		return Hello{}, h.wrong("use", m.Use, "1 (control) or 2 (data)")
	case !m.Protection.known():
		return Hello{}, h.wrong("protection", uint8(m.Protection), "1 (sealed), 2 (authenticated) or 3 (none)")
	}
	return m, nil
}
