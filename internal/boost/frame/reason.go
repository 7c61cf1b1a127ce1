package frame

import "fmt"

// reasonLen is the size in bytes of a reason: one, and three of padding.
const reasonLen = 4

// A Refusal is why a session was not opened.
type Refusal uint8

// The reasons of REFUSED.
const (
	RefusedByHost Refusal = 1 // the end host answered with RST, or its network with an ICMP error
	Silence       Refusal = 2 // the end host did not answer
	NoRoom        Refusal = 3 // the agent has no memory or descriptors left
	NotMyLane     Refusal = 4 // the controller gave the agent no lane for these ends
	Draining      Refusal = 5 // the agent takes no new sessions
	CannotGoOn    Refusal = 6 // to TAKEOVER alone: the agent found the end host, nobody can go on with it, and it was reset
)

var refusals = [...]string{RefusedByHost: "refused by the end host", Silence: "the end host is silent", NoRoom: "no room",
	NotMyLane: "not a lane of this agent", Draining: "draining", CannotGoOn: "the connection cannot go on"}

func (r Refusal) known() bool { return r >= RefusedByHost && r <= CannotGoOn }

func (r Refusal) String() string {
	if !r.known() {
		return fmt.Sprintf("reason %d", uint8(r))
	}
	return refusals[r]
}

// Refused answers an OPEN: there will be no such session. Its offset is 0.
//
//	+---------------+-----------------------------------------------+
//	|    reason     |                       0                       |
//	+---------------+-----------------------------------------------+
type Refused struct {
	Session uint64
	Reason  Refusal
}

// Append writes the frame behind b.
func (m Refused) Append(b []byte) []byte {
	if !m.Reason.known() {
		panic(fmt.Sprintf("frame: REFUSED for %v", m.Reason))
	}
	b = Header{Type: TypeRefused, Length: reasonLen, Session: m.Session}.Append(b)
	return append(b, byte(m.Reason), 0, 0, 0)
}

// ParseRefused reads the payload of a REFUSED.
func ParseRefused(h Header, b []byte) (Refused, error) {
	if err := h.payload(TypeRefused, b); err != nil {
		return Refused{}, err
	}
	if h.Offset != 0 {
		return Refused{}, h.wrong("offset", h.Offset, "0")
	}
	m := Refused{Session: h.Session, Reason: Refusal(b[0])}
	if !m.Reason.known() {
		return Refused{}, h.wrong("reason", b[0], "1 to 6")
	}
	return m, nil
}

// A Cause is why a stream ends without its end.
type Cause uint8

// The causes of ABORT.
const (
	Reset   Cause = 1 // the end host sent RST
	Dead    Cause = 2 // the end host no longer answers
	Lost    Cause = 3 // bytes that an agent had acknowledged are gone with it
	Ordered Cause = 4 // an administrator or the controller ended the session
	Fault   Cause = 5 // the other agent broke the rules of the session
)

var causes = [...]string{Reset: "reset by the end host", Dead: "the end host no longer answers", Lost: "bytes were lost with an agent",
	Ordered: "ended by order", Fault: "the agents disagree"}

func (c Cause) known() bool { return c >= Reset && c <= Fault }

func (c Cause) String() string {
	if !c.known() {
		return fmt.Sprintf("cause %d", uint8(c))
	}
	return causes[c]
}

// Abort ends a stream without its end: behind the bytes before the offset comes a reset.
//
//	+---------------+-----------------------------------------------+
//	|     cause     |                       0                       |
//	+---------------+-----------------------------------------------+
type Abort struct {
	Session uint64
	Offset  uint64 // bytes of the stream that may still be delivered
	Cause   Cause
}

// Header is what the frame begins with.
func (m Abort) Header() Header {
	return Header{Type: TypeAbort, Length: reasonLen, Session: m.Session, Offset: m.Offset}
}

// Append writes the frame behind b.
func (m Abort) Append(b []byte) []byte {
	if !m.Cause.known() {
		panic(fmt.Sprintf("frame: ABORT for %v", m.Cause))
	}
	b = m.Header().Append(b)
	return append(b, byte(m.Cause), 0, 0, 0)
}

// ParseAbort reads the payload of an ABORT.
func ParseAbort(h Header, b []byte) (Abort, error) {
	if err := h.payload(TypeAbort, b); err != nil {
		return Abort{}, err
	}
	m := Abort{Session: h.Session, Offset: h.Offset, Cause: Cause(b[0])}
	if !m.Cause.known() {
		return Abort{}, h.wrong("cause", b[0], "1 to 5")
	}
	return m, nil
}
