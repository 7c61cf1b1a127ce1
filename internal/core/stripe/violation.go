package stripe

import (
	"errors"
	"fmt"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// ErrRetired says that a frame is about a session that was and is no more: it is answered with RETIRE.
var ErrRetired = errors.New("the session has ended")

// ErrNoRoom says that there is no memory for another session.
var ErrNoRoom = errors.New("no memory for another session")

// A Rule is what a peer can break (docs/protocol.md §9).
type Rule uint8

// The rules of sessions.
const (
	UnknownSession   Rule = 1 + iota // no session of the number was ever opened
	BeyondCredit                     // bytes for which no memory was granted
	BeyondEnd                        // bytes behind the end of the stream
	OtherEnd                         // the end is elsewhere than an earlier frame, or bytes that came, say
	NeverSent                        // it says that bytes arrived which were not sent
	NeverEnded                       // it says that the stream's end arrived, which was not sent
	TooManyGaps                      // more ranges with gaps than a sender can make
	AlreadyForgotten                 // it wants bytes that it had acknowledged
	NoLongerKept                     // its sender has lost bytes that did not arrive
)

var rules = [...]string{
	UnknownSession: "no such session was ever opened", BeyondCredit: "offset %d is beyond the credit of %d",
	BeyondEnd: "offset %d is behind the stream's end at %d", OtherEnd: "it puts the stream's end at %d, where %d was known",
	NeverSent: "it says that bytes up to %d arrived, %d were sent", NeverEnded: "it says that the stream's end arrived, which was not sent",
	TooManyGaps: "it makes %d ranges with gaps, at most %d are kept", AlreadyForgotten: "it wants bytes from %d, what is before %d was acknowledged",
	NoLongerKept: "it has lost the bytes at %d, of %d that it has told",
}

// A Violation is a frame that breaks a rule: the connection that carried it is to be ended.
type Violation struct {
	Rule       Rule
	Frame      frame.Type
	Session    uint64
	Got, Limit uint64 // offsets, or counts, as the rule has them
}

func (v *Violation) Error() string {
	what := rules[v.Rule]
	switch v.Rule {
	case UnknownSession, NeverEnded:
	default:
		what = fmt.Sprintf(what, v.Got, v.Limit)
	}
	return fmt.Sprintf("frame %v of session %#x: %s", v.Frame, v.Session, what)
}

// opened are the highest numbers of sessions so far, of those that either agent opens: even and odd.
type opened [2]uint64

func (o *opened) add(session uint64) { o[session&1] = max(o[session&1], session) }

// missing is the error about a session that is not there.
func (o *opened) missing(f frame.Type, session uint64) error {
	if session <= o[session&1] {
		return ErrRetired
	}
	return &Violation{Rule: UnknownSession, Frame: f, Session: session}
}
