package frame

import "encoding/binary"

const (
	stateLen = 16
	rangeLen = 16
	// MaxRanges is how many ranges a STATE tells: the oldest are those that may be worth sending again.
	MaxRanges = 32

	// ended is the flag of a STATE whose sender's end host has acknowledged the FIN, and of a RESUME whose sender has
	// read one.
	ended = 1
)

// A Range is bytes of a stream: From and all behind it, To no longer.
type Range struct{ From, To uint64 }

// State is what the receiving agent of a stream says to the sending one. Its offset is what the end host has
// acknowledged.
//
//	+---------------------------------------------------------------+
//	|                            arrived                            |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                            credit                             |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|             from, to of a range beyond arrived                |
//	:             (0 to 32 times; ascending, with gaps)             :
//	+---------------------------------------------------------------+
type State struct {
	Session uint64
	// Acknowledged is how many bytes the end host has acknowledged: the sender need not keep them. Where the stream has
	// ended and Ended is set the end host has acknowledged the FIN as well.
	Acknowledged uint64
	Ended        bool
	Arrived      uint64  // all bytes before it are at the agent
	Credit       uint64  // the sender may send bytes before it: memory is reserved for all of them
	Ranges       []Range // what arrived beyond a gap, the lowest MaxRanges of it
}

// Append writes the frame behind b.
func (m *State) Append(b []byte) []byte {
	h := Header{Type: TypeState, Length: uint32(stateLen + rangeLen*len(m.Ranges)), Session: m.Session, Offset: m.Acknowledged}
	if m.Ended {
		h.Flags = ended
	}
	if err := m.check(h); err != nil {
		panic("frame: " + err.Error())
	}
	b = h.Append(b)
	b = binary.BigEndian.AppendUint64(b, m.Arrived)
	b = binary.BigEndian.AppendUint64(b, m.Credit)
	for _, r := range m.Ranges {
		b = binary.BigEndian.AppendUint64(b, r.From)
		b = binary.BigEndian.AppendUint64(b, r.To)
	}
	return b
}

func (m *State) check(h Header) error {
	if err := h.within("arrived", m.Arrived, m.Acknowledged); err != nil {
		return err
	}
	if err := h.within("credit", m.Credit, m.Arrived); err != nil {
		return err
	}
	last := m.Arrived
	for _, r := range m.Ranges {
		if err := h.within("range's beginning", r.From, last+1); err != nil {
			return err
		}
		if err := h.within("range's end", r.To, r.From+1); err != nil {
			return err
		}
		last = r.To
	}
	if last > m.Credit {
		return h.wrong("credit", m.Credit, "no less than what has arrived")
	}
	return nil
}

// ParseState reads the payload of a STATE. Its ranges go into ranges[:0], which is the caller's: with room for
// MaxRanges nothing is allocated.
func ParseState(h Header, b []byte, ranges []Range) (State, error) {
	if err := h.payload(TypeState, b); err != nil {
		return State{}, err
	}
	if (len(b)-stateLen)%rangeLen != 0 {
		return State{}, h.wrong("length", h.Length, "16, and 16 for each range")
	}
	m := State{
		Session: h.Session, Acknowledged: h.Offset, Ended: h.Flags&ended != 0,
		Arrived: binary.BigEndian.Uint64(b), Credit: binary.BigEndian.Uint64(b[8:]), Ranges: ranges[:0],
	}
	for b = b[stateLen:]; len(b) > 0; b = b[rangeLen:] {
		m.Ranges = append(m.Ranges, Range{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])})
	}
	return m, m.check(h)
}
