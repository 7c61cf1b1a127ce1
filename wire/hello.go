package wire

import (
	"encoding/binary"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// Hello is what a router says of itself on each of its links: to ff02::1 each second and on SOLICIT,
// unicast over configured links. Its nonce is 0: equal HELLOs are equal bytes.
//
//	+---------------+---------------+---------------+---------------+
//	|flags    R   S |  name length  |  port length  |       0       |
//	+---------------+---------------+---------------+---------------+
//	|         relay TCP port        |               0               |
//	+-------------------------------+-------------------------------+
//	|                       router's locator                        |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|  name ...  port name ...                                      |
type Hello struct {
	Header
	Service   bool        // S, flag bit 0: resolves first packets
	Relay     bool        // R, flag bit 1: carries the control channel of hosts on this link
	RelayPort uint16      // TCP, at the HELLO's source address; 0 without Relay
	Locator   sid.Locator // 0 while the controller has given none
	Name      string      // of the router
	Port      string      // of the router's port that the HELLO leaves by
}

const (
	helloLen    = 16
	flagService = 1 << 0
	flagRelay   = 1 << 1
)

// Type is TypeHello.
func (Hello) Type() Type { return TypeHello }

// Append implements Message.
func (m Hello) Append(b []byte) []byte {
	checkName("router name", m.Name)
	checkName("port name", m.Port)
	var flags byte
	if m.Service {
		flags |= flagService
	}
	if m.Relay {
		flags |= flagRelay
	}
	b = m.Header.append(b, TypeHello, helloLen+len(m.Name)+len(m.Port))
	b = append(b, flags, byte(len(m.Name)), byte(len(m.Port)), 0)
	b = binary.BigEndian.AppendUint16(b, m.RelayPort)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Locator))
	b = append(b, m.Name...)
	return append(b, m.Port...)
}

func parseHello(h Header, body []byte) (Message, error) {
	if len(body) < helloLen {
		return nil, fmt.Errorf("body of %d bytes, want at least %d: %w", len(body), helloLen, ErrLength)
	}
	name, port := int(body[1]), int(body[2])
	if err := exactly(body, helloLen+name+port); err != nil {
		return nil, err
	}
	names := body[helloLen:]
	return Hello{
		Header:    h,
		Service:   body[0]&flagService != 0,
		Relay:     body[0]&flagRelay != 0,
		RelayPort: binary.BigEndian.Uint16(body[4:]),
		Locator:   sid.Locator(binary.BigEndian.Uint64(body[8:])),
		Name:      string(names[:name]),
		Port:      string(names[name:]),
	}, nil
}
