package session

import (
	"encoding/binary"
	"time"

	"scaffold.dev/scaffold/wire"
)

// touch notes that what Save gives of the flow may have changed.
func (e *Engine) touch(f *flow) {
	if f != nil {
		e.touched[f.Key] = struct{}{}
	}
}

// Touched returns the flows that changed, came or went since the last call, in no order.
func (e *Engine) Touched() []Key {
	if len(e.touched) == 0 {
		return nil
	}
	list := make([]Key, 0, len(e.touched))
	for k := range e.touched {
		list = append(list, k)
	}
	e.touched = map[Key]struct{}{}
	return list
}

// SavedLen is the most bytes that Save gives.
const SavedLen = savedLen + 8*wire.MaxChain + oldLen*mostSaved

const (
	saveVersion = 1
	savedLen    = 8 + 16 + 12 + 3*16 + 8 + 4*4 + len(wire.Key{}) + transportLen
	oldLen      = 24
	mostSaved   = 8 // former addresses; older ones are as good as over
	// transportLen: ports, MSS, flags and scales, four numbers of the sequence space, two of the stream.
	transportLen = 2*3 + 2 + 4*4 + 2*8
)

// Save writes down one end, for Load: fixed layout, big-endian, version first. Nil when there is none.
func (e *Engine) Save(k Key) []byte {
	f := e.flows[k]
	if f == nil {
		return nil
	}
	old := f.old[max(0, len(f.old)-mostSaved):]
	b := append(make([]byte, 0, SavedLen), saveVersion, byte(f.Role), byte(f.Proto), byte(f.state), flags(f.Continue), byte(len(f.chain)), byte(len(old)), 0)
	b = append(b, f.Stable.AsSlice()...)
	b = binary.BigEndian.AppendUint32(b, f.Service.SS)
	b = binary.BigEndian.AppendUint64(b, uint64(f.Service.Suffix))
	for _, a := range [...]Addr{f.Local, f.Peer, f.send} {
		b = appendAddr(b, a)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(f.confirmed))
	for _, n := range [...]uint32{f.epoch, f.seen, f.peerSeen, uint32(f.asked)} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = append(b, f.peerKey[:]...)
	b = appendTransport(b, &f.transport)
	for _, s := range f.chain {
		b = binary.BigEndian.AppendUint64(b, uint64(s))
	}
	for _, r := range old {
		b = appendAddr(b, r.Addr)
		b = binary.BigEndian.AppendUint64(b, runsOut(r.until))
	}
	return b
}

// flags packs up to eight, the first in the lowest bit.
func flags(set ...bool) (b byte) {
	for i, on := range set {
		if on {
			b |= 1 << i
		}
	}
	return b
}

// runsOut is all that is saved of a time: what is left of a grace is granted anew, in full, to who loads it.
// Between two processes only the calendar would tell how much that was, and it may jump.
func runsOut(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return 1
}

func appendAddr(b []byte, a Addr) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(a.Locator))
	return binary.BigEndian.AppendUint64(b, uint64(a.Socket))
}

func appendTransport(b []byte, t *wire.Transport) []byte {
	for _, n := range [...]uint16{t.ClientPort, t.ServerPort, t.MSS} {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	b = append(b, flags(t.SACK, t.Timestamps, t.Scales), t.ClientScale<<4|t.ServerScale)
	for _, n := range [...]uint32{t.SndUna, t.RcvNxt, t.TSVal, t.TSEcr} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = binary.BigEndian.AppendUint64(b, t.Sent)
	return binary.BigEndian.AppendUint64(b, t.Received)
}
