package stripe

import (
	"sort"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// An outgoing stream is what one session sends.
type outgoing struct {
	session    uint64
	chunks     queue[kept] // from the first that is not acknowledged on, without gaps
	next       int         // index of the first that was never sent
	again      int         // how many went down with a connection
	lost       int         // no chunk before this index has
	seen       int         // all before it have arrived
	copied     int         // all before it have as many copies as the strategy wants, or have arrived
	from, tail uint64      // offsets: of the first chunk, and behind the last one
	reached    uint64      // offset behind the last byte that was ever sent
	credit     uint64
	floor      uint64 // what is before it was acknowledged to a worker of ours or of the peer that is gone

	early bool  // the peer has not answered OPEN
	only  *path // which carries the OPEN; nil: none does

	end      ending
	cause    frame.Cause
	pending  uint64 // bytes that may go out now
	deficit  uint64 // bytes that it may still send in this turn
	inTurn   bool   // it is in Sender.turns
	underWay bool   // it is in Sender.waiting
}

// An ending is how far the end of a stream has come.
type ending struct {
	kind  frame.Type // TypeEnd, TypeAbort; 0: the stream goes on
	ready bool       // it waits to be sent
	on    *path      // who carries it
	sent  bool
	done  bool      // the end host has it
	until time.Time // it is left to a quicker connection
	due   time.Time // when it should have arrived

	looked bool // it is in Sender.ended
}

// front is the index of the chunk that goes out next, -1 if there is none.
func (o *outgoing) front() int {
	if o.early && o.only == nil {
		return -1
	}
	if o.again > 0 {
		for ; o.lost < o.chunks.len(); o.lost++ {
			if k := o.chunks.at(o.lost); k.again && k.End() <= o.credit {
				return o.lost
			} else if k.again {
				return -1
			}
		}
	}
	for ; o.next < o.chunks.len(); o.next++ {
		k := o.chunks.at(o.next)
		switch {
		case k.arrived: // a worker before this one sent it
		case k.End() <= o.credit:
			return o.next
		default:
			return -1
		}
	}
	return -1
}

// ready is how many bytes may go out now.
func (o *outgoing) ready() uint64 {
	i := o.front()
	if i < 0 {
		return 0
	}
	n := uint64(0)
	if o.again > 0 {
		n = uint64(o.chunks.at(i).Length)
	}
	if o.next < o.chunks.len() {
		if from := o.chunks.at(o.next).Offset; min(o.credit, o.tail) > from {
			n += min(o.credit, o.tail) - from
		}
	}
	return n
}

// find is the index of the first chunk that ends behind an offset.
func (o *outgoing) find(offset uint64) int {
	return sort.Search(o.chunks.len(), func(i int) bool { return o.chunks.at(i).End() > offset })
}

// arrive notes that the far agent has a chunk.
func (o *outgoing) arrive(i int) {
	k := o.chunks.at(i)
	if k.arrived {
		return
	}
	if k.again {
		k.again = false
		o.again--
	}
	k.arrived = true
	k.land()
}

// arrivedTo notes that all bytes before an offset have arrived.
func (o *outgoing) arrivedTo(offset uint64) {
	for ; o.seen < o.chunks.len() && (o.chunks.at(o.seen).arrived || o.chunks.at(o.seen).End() <= offset); o.seen++ {
		o.arrive(o.seen)
	}
}

// arrivedBetween notes that a range has arrived; of a chunk that is partly in it nothing is known.
func (o *outgoing) arrivedBetween(r frame.Range) {
	i := o.find(r.From)
	if i < o.chunks.len() && o.chunks.at(i).Offset < r.From {
		i++
	}
	for ; i < o.chunks.len() && o.chunks.at(i).End() <= r.To; i++ {
		o.arrive(i)
	}
}

// release takes off the front all chunks that end at or before an offset, and appends to slots those that no chunk
// needs any more.
func (o *outgoing) release(offset uint64, slots []uint32) []uint32 {
	n := 0
	for o.chunks.len() > 0 && o.chunks.at(0).End() <= offset {
		o.arrive(0)
		k := o.chunks.pop()
		o.from = k.End()
		n++
		if o.chunks.len() == 0 || o.chunks.at(0).Slot != k.Slot {
			slots = append(slots, k.Slot)
		}
	}
	o.next, o.lost, o.seen, o.copied = max(o.next-n, 0), max(o.lost-n, 0), max(o.seen-n, 0), max(o.copied-n, 0)
	return slots
}

// split cuts the chunk that would go out next where credit ends, if that is worth a frame. It is needed after RESUME
// alone: else nothing beyond credit is read.
func (o *outgoing) split() {
	i := o.next
	if o.again > 0 {
		for i = o.lost; i < o.chunks.len() && !o.chunks.at(i).again; i++ {
		}
	}
	if i >= o.chunks.len() {
		return
	}
	k := o.chunks.at(i)
	if k.arrived || k.Offset+MinChunk > o.credit || k.End() <= o.credit {
		return
	}
	o.cut(i, uint32(o.credit-k.Offset))
}

// leastCut is what each part of a chunk has at least that is cut at an offset which the peer says, in bytes: a peer that
// names each second byte would make records of many times what they are about.
const leastCut = MinChunk / 4

// cutAt cuts the chunk that an offset lies in, if it waits to go out: a worker before this one had cut it otherwise, and what
// of it has arrived is not to go out again. A connection that has just begun takes round trips for it.
func (o *outgoing) cutAt(offset uint64) {
	i := o.find(offset)
	if i >= o.chunks.len() || o.chunks.len() >= MaxChunks {
		return
	}
	k := o.chunks.at(i)
	if k.Offset+leastCut <= offset && offset+leastCut <= k.End() && !k.arrived && k.on[0] == nil {
		o.cut(i, uint32(offset-k.Offset))
	}
}

// cut makes two chunks of one that is to go out, the first of so many bytes.
func (o *outgoing) cut(i int, n uint32) {
	k := o.chunks.at(i)
	rest := *k
	rest.Offset, rest.At, rest.Length = k.Offset+uint64(n), k.At+n, k.Length-n
	k.Length = n
	if k.again {
		o.again++
	}
	if i < o.next {
		o.next++
	}
	o.chunks.insert(i+1, rest)
}
