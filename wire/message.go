package wire

import "fmt"

// A Message is one of Hello, Solicit, Probe, ProbeAck, Fail, Bound, Renegotiate, Resume, FlowFail and Link.
type Message interface {
	// Append writes the message behind b. It panics on names longer than MaxName and on messages
	// longer than MaxLen: who fills them from configuration checks there.
	Append(b []byte) []byte
	// Type says which of them it is.
	Type() Type
}

// Parse reads one datagram. The result keeps no reference to b.
func Parse(b []byte) (Message, error) {
	t, h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	m, err := parseBody(t, h, b[HeaderLen:])
	if err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	return m, nil
}

func parseBody(t Type, h Header, body []byte) (Message, error) {
	switch t {
	case TypeHello:
		return parseHello(h, body)
	case TypeSolicit:
		return parseSolicit(h, body)
	case TypeProbe:
		return Probe{h}, exactly(body, 0)
	case TypeProbeAck:
		return ProbeAck{h}, exactly(body, 0)
	case TypeFail:
		return parseFail(h, body)
	case TypeBound:
		return parseBound(h, body)
	case TypeRSYN, TypeRSYNACK, TypeRACK:
		return parseRenegotiate(t, h, body)
	case TypeResume:
		return parseResume(h, body)
	case TypeFlowFail:
		return parseFlowFail(h, body)
	case TypeLink:
		return parseLink(h, body)
	}
	return nil, ErrType
}

func exactly(body []byte, n int) error {
	if len(body) != n {
		return fmt.Errorf("body of %d bytes, want %d: %w", len(body), n, ErrLength)
	}
	return nil
}

// checkName panics where a name does not fit its length octet.
func checkName(what, s string) {
	if len(s) > MaxName {
		panic(fmt.Sprintf("wire: %s of %d bytes, at most %d", what, len(s), MaxName))
	}
}
