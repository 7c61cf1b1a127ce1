package wire

import "fmt"

// Solicit asks the routers on a link (ff02::1) for their HELLO.
//
//	+---------------+---------------+---------------+---------------+
//	|  name length  |                       0                       |
//	+---------------+-----------------------------------------------+
//	|  name of the host or router that asks ...                     |
type Solicit struct {
	Header
	Name string
}

const solicitLen = 4

// Type is TypeSolicit.
func (Solicit) Type() Type { return TypeSolicit }

// Append implements Message.
func (m Solicit) Append(b []byte) []byte {
	checkName("name", m.Name)
	b = m.Header.append(b, TypeSolicit, solicitLen+len(m.Name))
	b = append(b, byte(len(m.Name)), 0, 0, 0)
	return append(b, m.Name...)
}

func parseSolicit(h Header, body []byte) (Message, error) {
	if len(body) < solicitLen {
		return nil, fmt.Errorf("body of %d bytes, want at least %d: %w", len(body), solicitLen, ErrLength)
	}
	if err := exactly(body, solicitLen+int(body[0])); err != nil {
		return nil, err
	}
	return Solicit{Header: h, Name: string(body[solicitLen:])}, nil
}
