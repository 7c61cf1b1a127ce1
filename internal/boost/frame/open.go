package frame

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

const (
	openLen   = 8 + 8 + 16 + 16 + 2 + 2 + optionsLen
	openedLen = 8 + 2*optionsLen
)

// Open asks the far agent for a connection to the server. Its offset is 0.
//
//	+---------------------------------------------------------------+
//	|                             lane                              |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|           credit for what comes from the server               |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|             client's address (IPv4: ::ffff:a.b.c.d)           |
//	:                                                               :
//	+---------------------------------------------------------------+
//	|                       server's address                        |
//	:                                                               :
//	+-------------------------------+-------------------------------+
//	|         client's port         |         server's port         |
//	+-------------------------------+-------------------------------+
//	|                  options of the client's SYN                  |
//	:                                                               :
//	+---------------------------------------------------------------+
type Open struct {
	Session uint64
	// Lane is the number under which the controller told both agents that connections like this one are theirs.
	Lane           uint64
	Credit         uint64 // an offset, as in State
	Client, Server netip.AddrPort
	SYN            Options // the client's
}

// Append writes the frame behind b. It panics on ends that a peer would refuse.
func (m *Open) Append(b []byte) []byte {
	h := Header{Type: TypeOpen, Length: openLen, Session: m.Session}
	if err := m.check(h); err != nil {
		panic("frame: " + err.Error())
	}
	return m.payload(h.Append(b))
}

func (m *Open) payload(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, m.Lane)
	b = binary.BigEndian.AppendUint64(b, m.Credit)
	client, server := m.Client.Addr().As16(), m.Server.Addr().As16()
	b = append(append(b, client[:]...), server[:]...)
	b = binary.BigEndian.AppendUint16(b, m.Client.Port())
	b = binary.BigEndian.AppendUint16(b, m.Server.Port())
	return m.SYN.append(b)
}

func (m *Open) check(h Header) error {
	if h.Offset != 0 {
		return h.wrong("offset", h.Offset, "0")
	}
	if err := m.ends(h); err != nil {
		return err
	}
	return h.within("credit", m.Credit, 0)
}

// ends refuses what no connection of TCP has for its ends.
func (m *Open) ends(h Header) error {
	client, server := m.Client.Addr(), m.Server.Addr()
	switch {
	case !single(client):
		return h.wrong("client's address", client, "an address of one machine")
	case !single(server):
		return h.wrong("server's address", server, "an address of one machine")
	case client.Is4() != server.Is4():
		return h.wrong("server's address", server, fmt.Sprintf("one of the family of the client's, %v", client))
	case m.Client.Port() == 0:
		return h.wrong("client's port", 0, "1 to 65535")
	case m.Server.Port() == 0:
		return h.wrong("server's port", 0, "1 to 65535")
	}
	return nil
}

func single(a netip.Addr) bool {
	return a.IsValid() && !a.Is4In6() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast()
}

// ParseOpen reads the payload of an OPEN.
func ParseOpen(h Header, b []byte) (Open, error) {
	if err := h.payload(TypeOpen, b); err != nil {
		return Open{}, err
	}
	m, err := h.open(b)
	if err == nil {
		err = m.check(h)
	}
	return m, err
}

// open reads what an OPEN says, at the beginning of b.
func (h Header) open(b []byte) (m Open, err error) {
	m = Open{
		Session: h.Session, Lane: binary.BigEndian.Uint64(b), Credit: binary.BigEndian.Uint64(b[8:]),
		Client: addrPort(b[16:], b[48:]), Server: addrPort(b[32:], b[50:]),
	}
	m.SYN, err = h.options(b[52:])
	return m, err
}

func addrPort(addr, port []byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(addr)).Unmap(), binary.BigEndian.Uint16(port))
}

// Opened says that the sender's connection to its end host stands. The far agent sends it once the server has answered,
// the near one once the client's handshake is over and the far one has answered. Its offset is 0.
//
//	+---------------------------------------------------------------+
//	|         credit for what comes from the other agent            |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|            options of the SYN or SYN-ACK of the end host      |
//	:                                                               :
//	+---------------------------------------------------------------+
//	|            options of the SYN or SYN-ACK of the agent         |
//	:                                                               :
//	+---------------------------------------------------------------+
type Opened struct {
	Session   uint64
	Credit    uint64 // an offset, as in State
	Host, Own Options
}

// Append writes the frame behind b.
func (m *Opened) Append(b []byte) []byte {
	b = Header{Type: TypeOpened, Length: openedLen, Session: m.Session}.Append(b)
	b = binary.BigEndian.AppendUint64(b, m.Credit)
	return m.Own.append(m.Host.append(b))
}

// ParseOpened reads the payload of an OPENED.
func ParseOpened(h Header, b []byte) (Opened, error) {
	if err := h.payload(TypeOpened, b); err != nil {
		return Opened{}, err
	}
	if h.Offset != 0 {
		return Opened{}, h.wrong("offset", h.Offset, "0")
	}
	m := Opened{Session: h.Session, Credit: binary.BigEndian.Uint64(b)}
	err := h.within("credit", m.Credit, 0)
	if err == nil {
		m.Host, err = h.options(b[8:])
	}
	if err == nil {
		m.Own, err = h.options(b[8+optionsLen:])
	}
	return m, err
}
