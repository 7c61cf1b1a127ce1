package stripe

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// Ready is what can be done at the end host of a stream.
type Ready struct {
	// Places are bytes to be written to its socket, in this order.
	Places []Place
	// End says that behind them comes a FIN, Abort that the socket is to be reset, for that cause.
	End   bool
	Abort frame.Cause // 0: it is not
}

// Deliver is what is ready of a stream; places go into into[:0], no more than it has room for. Once it is written,
// wholly or in part, the driver calls Delivered.
func (r *Receiver) Deliver(session uint64, into []Place) Ready {
	in := r.streams[session]
	if in == nil || in.finished {
		return Ready{}
	}
	if in.late {
		return Ready{Abort: in.cause}
	}
	most := in.delivered/Block*Block + uint64(cap(into))*Block
	part := frame.Range{From: in.delivered, To: min(in.arrived, most)}
	ready := Ready{Places: in.places(part, part.From, into[:0])}
	if in.kind != 0 && part.To == in.end {
		if in.kind == frame.TypeEnd {
			ready.End = true
		} else {
			ready.Abort = in.cause
		}
	}
	return ready
}

// Delivered says that n more bytes were written to the end host's socket.
func (r *Receiver) Delivered(now time.Time, session uint64, n int) {
	in := r.streams[session]
	if in == nil {
		return
	}
	if in.delivered += uint64(n); in.delivered > in.arrived {
		panic(fmt.Sprintf("stripe: session %#x: %d bytes were delivered, %d have arrived", session, in.delivered, in.arrived))
	}
	in.rate.add(now, uint64(n), r.rtt)
	had := in.extra()
	for in.first < in.delivered/Block {
		r.free = append(r.free, in.blocks.pop())
		in.first++
	}
	r.beyond -= had - in.extra()
	r.grant(in)
	r.tell(now, in)
}

// Acknowledged says what the end host has acknowledged: an offset, and whether the FIN behind it as well. A driver that
// has reset the end host because of an ABORT says so by ended.
func (r *Receiver) Acknowledged(now time.Time, session, offset uint64, ended bool) {
	in := r.streams[session]
	if in == nil {
		return
	}
	if offset = min(offset, in.delivered); offset > in.acknowledged {
		in.acknowledged = offset
		r.tell(now, in)
	}
	if ended && in.kind != 0 && !in.finished {
		in.finished = true
		r.hurry(in)
	}
}

// Restore says of a session that Open has just added where its end host's acknowledgements stand: what is written beyond
// them waits in the kernel, and outlives the worker that wrote it.
func (r *Receiver) Restore(session, acknowledged uint64) {
	if in := r.streams[session]; in != nil {
		in.acknowledged = min(acknowledged, in.delivered)
		in.said.acknowledged = in.acknowledged
	}
}

// Progress is how far a stream has come: what was delivered, and what was acknowledged.
func (r *Receiver) Progress(session uint64) (delivered, acknowledged uint64) {
	if in := r.streams[session]; in != nil {
		delivered, acknowledged = in.delivered, in.acknowledged
	}
	return delivered, acknowledged
}

// Credit is up to which offset a session's peer may send.
func (r *Receiver) Credit(session uint64) uint64 {
	if in := r.streams[session]; in != nil {
		return in.credit
	}
	return 0
}

// Reserved is how many blocks are in use.
func (r *Receiver) Reserved() int { return int(r.fresh) - len(r.free) }
