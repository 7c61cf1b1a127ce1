package frame

import "encoding/binary"

const resumeLen = 32

// Resume says how far a session has come, after the worker of its sender began anew: what the worker before it had in
// hand is taken from the kernel. Its offset is the first byte that the sender wants of the stream that comes in. With
// session 0, and no payload, it says that all sessions have been told: one that was not is gone.
//
//	+---------------------------------------------------------------+
//	|                         acknowledged                          |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                            credit                             |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                     kept: from this offset                    |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                       kept: to this offset                    |
//	|                                                               |
//	+---------------------------------------------------------------+
type Resume struct {
	Session uint64 // 0: all have been told
	// Wanted, Acknowledged, Credit are of the stream that comes in. Credit may be less than before.
	Wanted, Acknowledged, Credit uint64
	// Kept are the bytes of the other stream that its sender read and still has; Ended: its end host's FIN follows.
	Kept  Range
	Ended bool
}

// Append writes the frame behind b.
func (m *Resume) Append(b []byte) []byte {
	h := Header{Type: TypeResume, Session: m.Session, Offset: m.Wanted}
	if m.Session != 0 {
		h.Length = resumeLen
	}
	if m.Ended {
		h.Flags = ended
	}
	if err := m.check(h); err != nil {
		panic("frame: " + err.Error())
	}
	b = h.Append(b)
	if m.Session == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint64(b, m.Acknowledged)
	b = binary.BigEndian.AppendUint64(b, m.Credit)
	b = binary.BigEndian.AppendUint64(b, m.Kept.From)
	return binary.BigEndian.AppendUint64(b, m.Kept.To)
}

func (m *Resume) check(h Header) error {
	if m.Session == 0 {
		if m.Wanted != 0 {
			return h.wrong("offset", m.Wanted, "0: it is about all sessions")
		}
		return nil
	}
	if m.Acknowledged > m.Wanted {
		return h.wrong("acknowledged", m.Acknowledged, "no more than the offset")
	}
	if err := h.within("credit", m.Credit, m.Wanted); err != nil {
		return err
	}
	return h.within("end of what is kept", m.Kept.To, m.Kept.From)
}

// ParseResume reads the payload of a RESUME.
func ParseResume(h Header, b []byte) (Resume, error) {
	if err := h.payload(TypeResume, b); err != nil {
		return Resume{}, err
	}
	m := Resume{Session: h.Session, Wanted: h.Offset}
	want := 0
	if m.Session != 0 {
		want = resumeLen
	}
	if len(b) != want {
		return Resume{}, h.wrong("length", h.Length, "32 for a session, 0 for all")
	}
	if m.Session != 0 {
		m.Ended = h.Flags&ended != 0
		m.Acknowledged, m.Credit = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		m.Kept = Range{binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:])}
	}
	return m, m.check(h)
}
