package frame

import (
	"encoding/binary"
	"fmt"
)

const (
	// HeaderLen is the size in bytes of what every frame begins with.
	HeaderLen = 24
	// MaxData is the size in bytes of the largest chunk: larger ones save no processor, and hold up others behind them.
	MaxData = 1 << 20
	// MaxOffset is the largest offset. Offsets count bytes and never wrap: at 100 Gbit/s this one is 11 years away, and
	// the sum of two of them still fits 64 bits.
	MaxOffset = 1 << 62
)

// A Type says what a frame is.
type Type uint8

// The types of docs/protocol.md §9.
const (
	TypeHello   Type = 1
	TypeOpen    Type = 2
	TypeOpened  Type = 3
	TypeRefused Type = 4
	TypeData    Type = 5
	TypeEnd     Type = 6
	TypeAbort   Type = 7
	TypeState   Type = 8
	TypeResume  Type = 9
	TypePing    Type = 10
	TypeRetire  Type = 11
	// Since version 2 of the trunk protocol.
	TypeTakeover Type = 12
	TypeTaken    Type = 13
)

// A shape is what holds for all frames of a type.
type shape struct {
	name     string
	min, max uint32 // of the payload, bytes
	session  bool   // it is about a session; else session is 0
}

var shapes = [...]shape{
	TypeHello:    {"HELLO", helloLen, helloLen, false},
	TypeOpen:     {"OPEN", openLen, openLen, true},
	TypeOpened:   {"OPENED", openedLen, openedLen, true},
	TypeRefused:  {"REFUSED", reasonLen, reasonLen, true},
	TypeData:     {"DATA", 1, MaxData, true},
	TypeEnd:      {"END", 0, 0, true},
	TypeAbort:    {"ABORT", reasonLen, reasonLen, true},
	TypeState:    {"STATE", stateLen, stateLen + MaxRanges*rangeLen, true},
	TypeResume:   {"RESUME", 0, resumeLen, false}, // of a session, or of none: Resume.check
	TypePing:     {"PING", 0, 0, false},
	TypeRetire:   {"RETIRE", 0, 0, true},
	TypeTakeover: {"TAKEOVER", takeoverLen, takeoverLen, true},
	TypeTaken:    {"TAKEN", takenLen, takenLen, true},
}

func (t Type) known() bool { return int(t) < len(shapes) && shapes[t].name != "" }

func (t Type) String() string {
	if !t.known() {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return shapes[t].name
}

// A Header is what every frame begins with.
type Header struct {
	Type    Type
	Flags   uint8
	Length  uint32 // of the payload, bytes
	Session uint64 // 0: the trunk itself
	Offset  uint64 // bytes of the stream before this frame; what else it means stands at the type
}

// End is the offset behind the last byte of a DATA frame.
func (h Header) End() uint64 { return h.Offset + uint64(h.Length) }

// Append writes the header behind b. It panics where a peer would refuse it: that is our bug.
func (h Header) Append(b []byte) []byte {
	if err := h.check(); err != nil {
		panic("frame: " + err.Error())
	}
	b = append(b, byte(h.Type), h.Flags, 0, 0)
	b = binary.BigEndian.AppendUint32(b, h.Length)
	b = binary.BigEndian.AppendUint64(b, h.Session)
	return binary.BigEndian.AppendUint64(b, h.Offset)
}

// ParseHeader reads the header at the beginning of b, which has at least HeaderLen bytes. What it returns without an
// error is within the limits of its type: so many bytes may be read behind it.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, &Error{Field: "header", Got: fmt.Sprintf("%d bytes", len(b)), Want: "24 bytes"}
	}
	h := Header{
		Type:    Type(b[0]),
		Flags:   b[1],
		Length:  binary.BigEndian.Uint32(b[4:]),
		Session: binary.BigEndian.Uint64(b[8:]),
		Offset:  binary.BigEndian.Uint64(b[16:]),
	}
	return h, h.check()
}

func (h Header) check() error {
	if !h.Type.known() {
		return h.wrong("type", uint8(h.Type), fmt.Sprintf("1 to %d", len(shapes)-1))
	}
	s := &shapes[h.Type]
	if h.Length < s.min || h.Length > s.max {
		return h.wrong("length", h.Length, span(s.min, s.max))
	}
	if h.Type != TypeResume && (h.Session != 0) != s.session {
		if s.session {
			return h.wrong("session", h.Session, "that of a connection, not 0")
		}
		return h.wrong("session", h.Session, "0: it is about the trunk")
	}
	if h.Type != TypePing && h.Offset > MaxOffset-uint64(h.Length) {
		return h.wrong("offset", h.Offset, fmt.Sprintf("at most %d with all bytes of the payload", uint64(MaxOffset)))
	}
	return nil
}

func span(least, most uint32) string {
	if least == most {
		return fmt.Sprintf("%d", least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func (h Header) wrong(field string, got any, want string) error {
	return &Error{Type: h.Type, Session: h.Session, Field: field, Got: fmt.Sprint(got), Want: want}
}

// within checks that an offset in the payload is none that wraps, and no less than another one.
func (h Header) within(field string, offset, least uint64) error {
	if offset < least || offset > MaxOffset {
		return h.wrong(field, offset, fmt.Sprintf("%d to %d", least, uint64(MaxOffset)))
	}
	return nil
}

// payload checks that a parser was given the frame that it reads, whole.
func (h Header) payload(t Type, b []byte) error {
	if h.Type != t {
		panic(fmt.Sprintf("frame: %v was given to the parser of %v", h.Type, t))
	}
	if uint64(len(b)) != uint64(h.Length) {
		return h.wrong("payload", fmt.Sprintf("%d bytes", len(b)), fmt.Sprintf("the %d of its length", h.Length))
	}
	return h.check()
}
