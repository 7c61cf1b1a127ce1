package stripe

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

const (
	// stateDelay is how long news of a stream wait at most until STATE tells them: what comes in the meantime goes with
	// them.
	stateDelay = 5 * time.Millisecond
	// abortWait is how long an ABORT waits for the bytes before it.
	abortWait = 5 * time.Second
	// maxGaps is how many ranges a stream may have: a sender has MaxChunks on their way, and after its worker began anew
	// it may have cut them elsewhere.
	maxGaps = 2 * MaxChunks
)

// A Receiver is the receiving half of a trunk: it puts the streams of all its sessions together again, in memory that it
// has reserved for all that it grants credit for. Whatever arrives has its place.
type Receiver struct {
	streams map[uint64]*incoming
	opened  opened
	rtt     time.Duration

	free   []uint32 // blocks that were used before: they come first, for the machine has given memory for them
	fresh  uint32   // from this one on they never were
	blocks uint32   // how many there are
	beyond int      // how many are in use beyond the floor of each session

	urgent queue[*incoming] // whose STATE is due
	later  queue[timed]     // whose STATE waits, by time
	aborts queue[timed]     // whose ABORT waits, by time
	gaps   []frame.Range
}

// timed is a stream for which something is due.
type timed struct {
	in *incoming
	at time.Time
}

// NewReceiver makes a receiver with memory of so many blocks of Block bytes, which the driver has; they are numbered from
// 0 on. The round trip is that of the trunk.
func NewReceiver(blocks uint32, rtt time.Duration) *Receiver {
	return &Receiver{streams: map[uint64]*incoming{}, blocks: blocks, rtt: rtt}
}

// SetRTT tells the round trip of the trunk: that of its slowest connection.
func (r *Receiver) SetRTT(rtt time.Duration) { r.rtt = rtt }

// Open adds a session whose stream goes on at an offset: 0 for a new one; what is written to the end host's socket after
// the worker began anew. It returns the credit to grant. ErrNoRoom says that each of those that are there has a right to
// the memory.
func (r *Receiver) Open(session, from uint64) (credit uint64, err error) {
	if r.streams[session] != nil {
		panic(fmt.Sprintf("stripe: session %#x is there already", session))
	}
	if !r.HasRoom() {
		return 0, ErrNoRoom
	}
	r.opened.add(session)
	in := &incoming{session: session, acknowledged: from, delivered: from, arrived: from, first: from / Block, credit: from / Block * Block}
	r.streams[session] = in
	r.grant(in)
	in.said = told{in.acknowledged, in.credit}
	return in.credit, nil
}

// HasRoom reports whether there is memory for another session.
func (r *Receiver) HasRoom() bool { return (len(r.streams)+1)*floorBlocks+r.beyond <= int(r.blocks) }

// Gone says that there was a session that is not there any more: what comes of it is late, and no fault.
func (r *Receiver) Gone(session uint64) { r.opened.add(session) }

// Close forgets a session; its memory is free.
func (r *Receiver) Close(session uint64) {
	in := r.streams[session]
	if in == nil {
		return
	}
	delete(r.streams, session)
	r.beyond -= in.extra()
	for in.blocks.len() > 0 {
		r.free = append(r.free, in.blocks.pop())
	}
	in.urgent, in.due, in.over = false, time.Time{}, time.Time{}
}

// extra is how many blocks it has beyond its floor.
func (in *incoming) extra() int { return max(in.blocks.len()-floorBlocks, 0) }

// grant reserves memory for what the stream should have on its way, and moves its credit there. What is free is never
// given to one session whole, so that there is something for the next.
func (r *Receiver) grant(in *incoming) {
	if in.kind != 0 && in.credit >= in.end {
		return
	}
	for in.credit < in.delivered+in.window() {
		free := int(r.blocks) - len(r.streams)*floorBlocks - r.beyond
		if in.blocks.len() >= floorBlocks && in.extra() >= free {
			return
		}
		had := in.extra()
		in.blocks.push(r.take())
		r.beyond += in.extra() - had
		in.credit += Block
	}
}

// Short reports whether the session has less credit than it should, for want of memory.
func (r *Receiver) Short(session uint64) bool {
	in := r.streams[session]
	return in != nil && !(in.kind != 0 && in.credit >= in.end) && in.credit < in.delivered+in.window()
}

func (r *Receiver) take() (block uint32) {
	if n := len(r.free); n > 0 {
		block, r.free = r.free[n-1], r.free[:n-1]
		return block
	}
	r.fresh++
	return r.fresh - 1
}

// Arrive takes a DATA frame that came whole, and appends to places where the bytes of its payload go that were not there
// yet: none for a duplicate. The driver copies them before it lets anybody else at the receiver.
func (r *Receiver) Arrive(now time.Time, h frame.Header, places []Place) ([]Place, error) {
	in := r.streams[h.Session]
	if in == nil {
		return places, r.opened.missing(h.Type, h.Session)
	}
	switch end := h.End(); {
	case end > in.credit:
		return places, &Violation{BeyondCredit, h.Type, h.Session, end, in.credit}
	case in.kind != 0 && end > in.end:
		return places, &Violation{BeyondEnd, h.Type, h.Session, end, in.end}
	case end <= in.arrived || in.late:
		r.tell(now, in) // its sender does not know
		return places, nil
	}
	new := frame.Range{From: max(h.Offset, in.arrived), To: h.End()}
	if new.From == in.arrived && len(in.beyond) == 0 { // in order, as nearly all are
		in.arrived = new.To
		places = in.places(new, h.Offset, places)
		r.tell(now, in)
		return places, nil
	}
	r.gaps = in.beyond.missing(new, r.gaps[:0])
	if len(in.beyond)+len(r.gaps) > maxGaps {
		return places, &Violation{TooManyGaps, h.Type, h.Session, uint64(len(in.beyond) + 1), maxGaps}
	}
	for _, g := range r.gaps {
		places = in.places(g, h.Offset, places)
	}
	in.beyond = in.beyond.add(new)
	in.beyond, in.arrived = in.beyond.joined(in.arrived)
	r.tell(now, in)
	return places, nil
}

// End takes an END: the stream has so many bytes.
func (r *Receiver) End(now time.Time, h frame.Header) error {
	in := r.streams[h.Session]
	if in == nil {
		return r.opened.missing(h.Type, h.Session)
	}
	if in.kind == frame.TypeAbort && h.Offset <= in.end { // came before it on another connection
		return nil
	}
	if in.kind != 0 && h.Offset != in.end || h.Offset < in.highest() {
		return &Violation{OtherEnd, h.Type, h.Session, h.Offset, max(in.end, in.highest())}
	}
	in.kind, in.end = frame.TypeEnd, h.Offset
	r.tell(now, in)
	return nil
}

// Abort takes an ABORT: behind the bytes before its offset, and after 5 s at the latest, the end host is reset.
func (r *Receiver) Abort(now time.Time, m frame.Abort) error {
	in := r.streams[m.Session]
	if in == nil {
		return r.opened.missing(frame.TypeAbort, m.Session)
	}
	if in.kind == frame.TypeAbort && m.Offset != in.end || m.Offset < in.highest() {
		return &Violation{OtherEnd, frame.TypeAbort, m.Session, m.Offset, max(in.end, in.highest())}
	}
	if in.kind != frame.TypeAbort {
		in.kind, in.end, in.cause, in.over = frame.TypeAbort, m.Offset, m.Cause, now.Add(abortWait)
		r.aborts.push(timed{in, in.over})
	}
	r.tell(now, in)
	return nil
}

// Resume takes what a peer says whose worker began anew of the stream that it sends.
func (r *Receiver) Resume(now time.Time, m *frame.Resume) error {
	in := r.streams[m.Session]
	switch {
	case in == nil:
		return r.opened.missing(frame.TypeResume, m.Session)
	case m.Kept.From > in.arrived:
		return &Violation{NoLongerKept, frame.TypeResume, m.Session, in.arrived, in.highest()}
	case m.Kept.To < in.floor:
		return &Violation{NoLongerKept, frame.TypeResume, m.Session, m.Kept.To, in.floor}
	case in.kind != 0 && (m.Kept.To > in.end || m.Ended && m.Kept.To != in.end):
		return &Violation{OtherEnd, frame.TypeResume, m.Session, m.Kept.To, in.end}
	}
	if m.Ended && in.kind == 0 {
		in.kind, in.end = frame.TypeEnd, m.Kept.To
	}
	r.hurry(in)
	return nil
}

// PeerRestarted says that the peer's worker began anew, before any frame of that is given to the receiver.
func (r *Receiver) PeerRestarted() {
	for _, in := range r.streams {
		in.floor = in.highest()
	}
}

// Repeat has the state of all sessions told again: a connection died, and with it perhaps what was told on it.
func (r *Receiver) Repeat() {
	for _, session := range slices.Sorted(maps.Keys(r.streams)) { // in order, so that a run can be repeated
		r.hurry(r.streams[session])
	}
}
