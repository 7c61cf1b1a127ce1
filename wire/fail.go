package wire

import "fmt"

// A Reason says why a FAIL was sent.
type Reason uint8

// The reasons of docs/protocol.md §4 and §6.4.
const (
	NoSocket    Reason = 1
	ProcessDied Reason = 2
	Draining    Reason = 3
	HostGone    Reason = 4
	NoInstance  Reason = 5
	Refused     Reason = 6
	Elsewhere   Reason = 7 // the flow's peer committed to another copy of this end
	Unreachable Reason = 8 // never sent: nothing answers
	Forbidden   Reason = 9 // the client may not connect any more
)

var reasonNames = [...]string{NoSocket: "no socket", ProcessDied: "process died", Draining: "draining",
	HostGone: "host gone", NoInstance: "no instance", Refused: "refused",
	Elsewhere: "committed elsewhere", Unreachable: "unreachable", Forbidden: "forbidden"}

func (r Reason) String() string {
	if r == 0 || int(r) >= len(reasonNames) {
		return fmt.Sprintf("reason %d", uint8(r))
	}
	return reasonNames[r]
}

// MinQuote is how many bytes a FAIL quotes at least: the IPv6 header and the first 8 behind it.
const MinQuote = 48

// MaxQuote is how many bytes of the packet a FAIL can quote.
const MaxQuote = MaxLen - HeaderLen - failLen

const failLen = 4

// Fail tells the sender of the quoted packet that its peer does not take it.
//
//	+---------------+-----------------------------------------------+
//	|    reason     |                       0                       |
//	+---------------+-----------------------------------------------+
//	|  first 48 bytes or more of the packet that it answers ...     |
type Fail struct {
	Header
	Reason Reason // unknown ones are passed on: later versions may add some
	Quote  []byte // MinQuote to MaxQuote bytes, from the IPv6 header on
}

// Type is TypeFail.
func (Fail) Type() Type { return TypeFail }

// Append implements Message. A quote shorter than MinQuote is filled up with zeros, a longer one
// than MaxQuote is cut.
func (m Fail) Append(b []byte) []byte {
	quote := m.Quote[:min(len(m.Quote), MaxQuote)]
	fill := max(0, MinQuote-len(quote))
	b = m.Header.append(b, TypeFail, failLen+len(quote)+fill)
	b = append(b, byte(m.Reason), 0, 0, 0)
	b = append(b, quote...)
	return append(b, make([]byte, fill)...)
}

func parseFail(h Header, body []byte) (Message, error) {
	if len(body) < failLen+MinQuote {
		return nil, fmt.Errorf("body of %d bytes, want at least %d: %w", len(body), failLen+MinQuote, ErrLength)
	}
	return Fail{Header: h, Reason: Reason(body[0]), Quote: append([]byte(nil), body[failLen:]...)}, nil
}
