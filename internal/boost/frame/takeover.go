package frame

import (
	"encoding/binary"
	"fmt"
)

const (
	takeoverLen = openLen + 16 + 2*optionsLen + 4
	takenLen    = 8

	atServer = 0
	atClient = 1
)

// Takeover asks an agent to go on with a connection to an end host whose own agent is lost. Its offset is what has come
// from that end host to the sender, all of it. Flag 1: its end follows what is kept.
//
//	+---------------------------------------------------------------+
//	|         all of OPEN, 64 bytes; its credit is for what         |
//	:                    comes from the end host                    :
//	+---------------------------------------------------------------+
//	|               kept for the end host: from, to                 |
//	:                                                               :
//	+---------------------------------------------------------------+
//	|            options of the SYN or SYN-ACK of the end host      |
//	:                                                               :
//	+---------------------------------------------------------------+
//	|            options of the SYN or SYN-ACK of the lost agent    |
//	:                                                               :
//	+---------------+-----------------------------------------------+
//	|      side     |                       0                       |  1: the end host is the client
//	+---------------+-----------------------------------------------+
type Takeover struct {
	Open
	Arrived   uint64  // what has come from the end host, without gaps
	Kept      Range   // bytes for it that the sender still has
	Ended     bool    // a FIN is to follow what is kept
	Client    bool    // the end host is the client; else it is the server
	Host, Own Options // of the end host and of the agent that is lost
}

// Append writes the frame behind b. It panics on what a peer would refuse.
func (m *Takeover) Append(b []byte) []byte {
	h := Header{Type: TypeTakeover, Length: takeoverLen, Session: m.Session, Offset: m.Arrived}
	if m.Ended {
		h.Flags = ended
	}
	if err := m.check(h); err != nil {
		panic("frame: " + err.Error())
	}
	b = m.payload(h.Append(b))
	b = binary.BigEndian.AppendUint64(b, m.Kept.From)
	b = binary.BigEndian.AppendUint64(b, m.Kept.To)
	b = m.Own.append(m.Host.append(b))
	side := byte(atServer)
	if m.Client {
		side = atClient
	}
	return append(b, side, 0, 0, 0)
}

func (m *Takeover) check(h Header) error {
	if err := m.ends(h); err != nil {
		return err
	}
	if err := h.taken("what has come", m.Arrived, 0); err != nil {
		return err
	}
	if err := h.within("credit", m.Credit, m.Arrived); err != nil {
		return err
	}
	if err := h.taken("end of what is kept", m.Kept.To, m.Kept.From); err != nil {
		return err
	}
	if m.Kept.To-m.Kept.From > MaxKept {
		return h.wrong("end of what is kept", m.Kept.To, fmt.Sprintf("at most %d bytes behind its beginning", MaxKept))
	}
	return nil
}

// MaxKept is how many bytes a TAKEOVER may be of: less than half of what sequence numbers tell apart.
const MaxKept = 1 << 30

// maxTaken is the largest offset at which a stream goes on at another agent. Whoever names one has not counted to it: behind
// it has to be room for credit, and for all that comes later, or the agent that takes the stream on would have to say offsets
// that are none. A stream gets there in 5 years at 100 Gbit/s.
const maxTaken = MaxOffset / 2

// taken is within for an offset at which a stream goes on.
func (h Header) taken(field string, offset, least uint64) error {
	if offset < least || offset > maxTaken {
		return h.wrong(field, offset, fmt.Sprintf("%d to %d", least, uint64(maxTaken)))
	}
	return nil
}

// ParseTakeover reads the payload of a TAKEOVER.
func ParseTakeover(h Header, b []byte) (m Takeover, err error) {
	if err := h.payload(TypeTakeover, b); err != nil {
		return m, err
	}
	if m.Open, err = h.open(b); err != nil {
		return m, err
	}
	m.Arrived, m.Ended = h.Offset, h.Flags&ended != 0
	b = b[openLen:]
	m.Kept = Range{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	if m.Host, err = h.options(b[16:]); err != nil {
		return m, err
	}
	if m.Own, err = h.options(b[16+optionsLen:]); err != nil {
		return m, err
	}
	side := b[16+2*optionsLen]
	if side != atServer && side != atClient {
		return m, h.wrong("side", side, "0 (the server) or 1 (the client)")
	}
	m.Client = side == atClient
	return m, m.check(h)
}

// Taken answers a TAKEOVER: the sender has the connection. Its offset is what the end host has acknowledged, from which
// on the sender wants the stream.
//
//	+---------------------------------------------------------------+
//	|            credit for what comes from the other agent         |
//	|                                                               |
//	+---------------------------------------------------------------+
type Taken struct {
	Session uint64
	Wanted  uint64
	Credit  uint64 // an offset, as in State
}

// Append writes the frame behind b.
func (m Taken) Append(b []byte) []byte {
	h := Header{Type: TypeTaken, Length: takenLen, Session: m.Session, Offset: m.Wanted}
	if err := m.check(h); err != nil {
		panic("frame: " + err.Error())
	}
	return binary.BigEndian.AppendUint64(h.Append(b), m.Credit)
}

// ParseTaken reads the payload of a TAKEN.
func ParseTaken(h Header, b []byte) (Taken, error) {
	if err := h.payload(TypeTaken, b); err != nil {
		return Taken{}, err
	}
	m := Taken{Session: h.Session, Wanted: h.Offset, Credit: binary.BigEndian.Uint64(b)}
	return m, m.check(h)
}

func (m Taken) check(h Header) error {
	if err := h.taken("offset", m.Wanted, 0); err != nil {
		return err
	}
	return h.within("credit", m.Credit, m.Wanted)
}
