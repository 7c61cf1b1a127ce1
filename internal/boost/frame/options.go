package frame

import "encoding/binary"

// Options are what one end says of itself in a SYN or SYN-ACK: who knows them of both ends can restore the connection's
// socket elsewhere (TCP_REPAIR).
//
//	+---------------------------------------------------------------+
//	|                    initial sequence number                    |
//	+---------------------------------------------------------------+
//	|                     timestamp (RFC 7323)                      |
//	+-------------------------------+---------------+---------------+
//	|              MSS              | window scale  |    options    |  1 SACK, 2 timestamps, 4 window scale
//	+-------------------------------+---------------+---------------+
type Options struct {
	Sequence      uint32 // the initial one
	Timestamp     uint32 // what it sent as TSval; 0 without timestamps
	MSS           uint16 // bytes; 0: it sent none
	WindowScale   uint8  // how far its windows are shifted, 0 to 14; 0 too where Scaled is not set
	Scaled        bool   // it sent a window scale
	SACK          bool   // it permits selective acknowledgements
	HasTimestamps bool
}

const (
	optionsLen = 12
	// maxScale is RFC 7323's, §2.3.
	maxScale = 14

	hasSACK       = 1
	hasTimestamps = 2
	hasScale      = 4
)

// append writes the options behind b. It panics on a window scale that RFC 7323 does not have: who reads a SYN takes 14
// for what is more.
func (o *Options) append(b []byte) []byte {
	if o.WindowScale > maxScale {
		panic("frame: a window scale of more than 14")
	}
	has := byte(0)
	if o.SACK {
		has |= hasSACK
	}
	if o.HasTimestamps {
		has |= hasTimestamps
	}
	if o.Scaled {
		has |= hasScale
	}
	b = binary.BigEndian.AppendUint32(b, o.Sequence)
	b = binary.BigEndian.AppendUint32(b, o.Timestamp)
	b = binary.BigEndian.AppendUint16(b, o.MSS)
	return append(b, o.WindowScale, has)
}

// options reads the options of one end, at the beginning of b.
func (h Header) options(b []byte) (Options, error) {
	o := Options{
		Sequence: binary.BigEndian.Uint32(b), Timestamp: binary.BigEndian.Uint32(b[4:]),
		MSS: binary.BigEndian.Uint16(b[8:]), WindowScale: b[10],
		SACK: b[11]&hasSACK != 0, HasTimestamps: b[11]&hasTimestamps != 0, Scaled: b[11]&hasScale != 0,
	}
	if o.WindowScale > maxScale {
		return o, h.wrong("window scale", o.WindowScale, "0 to 14")
	}
	return o, nil
}
