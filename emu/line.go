package emu

import (
	"time"
)

// tick bounds how long a train of segments may last at the link's rate and still travel as one: the
// first of its segments is late by no more.
const tick = 50 * time.Microsecond

// A Frame is what lies in memory: one packet, or a train of packets that share one header, as the
// kernel hands them over with segmentation offload. Packets of a train are numbered one by one.
type Frame struct {
	Bytes uint32 // of the frame with one header
	Head  uint32 // bytes of the header that each packet of a train has
	Size  uint32 // bytes that follow the header in each packet but perhaps the last
	Count uint32 // packets
}

// bytes is the length of packet i.
func (f *Frame) bytes(i uint32) uint64 {
	if f.Count <= 1 {
		return uint64(f.Bytes)
	}
	return uint64(f.Head + min(f.Size, f.Bytes-f.Head-i*f.Size))
}

// span is the length of count packets from first on, each with its header.
func (f *Frame) span(first, count uint32) uint64 {
	if f.Count <= 1 {
		return uint64(f.Bytes)
	}
	payload := min((first+count)*f.Size, f.Bytes-f.Head) - first*f.Size
	return uint64(count)*uint64(f.Head) + uint64(payload)
}

// A Part is what leaves a line: consecutive packets of one frame, due together.
type Part struct {
	Due time.Duration
	Packet
	order uint64 // of parts due at the same time
}

// Counters of a line, in packets unless they say otherwise.
type Counters struct {
	Packets    uint64 `json:"packets"` // that entered, lost or not
	Bytes      uint64 `json:"bytes"`
	Passed     uint64 `json:"passed"` // that left, or will, without duplicates
	PassedByte uint64 `json:"passed_bytes"`
	Lost       uint64 `json:"lost"`       // by Loss
	LostBurst  uint64 `json:"lost_burst"` // by BurstLoss
	Overflow   uint64 `json:"overflow"`   // found the queue full
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"` // held back
	Parts      uint64 `json:"parts"`     // that frames were cut into
}

// A Line is one direction of a link. It is not safe for concurrent use. Times are measured from any
// fixed moment and never go back.
type Line struct {
	p       Params
	losses  losses
	waiting schedule
	next    uint64        // number of the next packet
	free    time.Duration // when the sender has sent all that it took
	owed    uint64        // fraction of a nanosecond that free is short of, in 1/rate
	last    time.Duration // latest due time of a part that keeps its order
	open    Part          // being put together; its count is 0 for none
	began   time.Duration // when the open part began to be sent
	number  uint64        // packet number of the open part's first
	held    time.Duration // until when what was sent before a change is in front
	sure    bool          // nothing is drawn
	fresh   bool          // the next packet that passes is the first after a pause, or after a change
	count   Counters
}

// NewLine returns a line with parameters that are valid.
func NewLine(p Params) *Line { return &Line{p: p, fresh: true, sure: p.sure()} }

// Params are the present parameters.
func (l *Line) Params() Params { return l.p }

// Counters are the present counters.
func (l *Line) Counters() Counters { return l.count }

// Set changes the parameters for the packets to come; what is on its way stays as it was decided,
// and in front. A packet's number goes on, so what is lost stays predictable.
func (l *Line) Set(p Params) {
	if p.BurstLoss == 0 {
		l.losses.bad = false
	}
	if p.Rate != l.p.Rate {
		l.owed = 0
	}
	l.fresh, l.held = true, l.last
	l.p, l.sure = p, p.sure()
}

// sure parameters leave nothing to be drawn: every packet that finds room in the queue passes, after the same delay.
func (p *Params) sure() bool {
	return p.Loss == 0 && p.BurstLoss == 0 && p.Duplicate == 0 && p.Reorder == 0 && p.Jitter == 0 && !p.Unordered
}

// Send takes the packets of p, which are some or all of those of a frame, and says how many parts of them
// will come out, duplicates included; 0 where all are lost.
func (l *Line) Send(now time.Duration, f Frame, p Packet) (parts int) {
	if l.sure && l.sendWhole(now, &f, p) {
		return 1
	}
	before := l.waiting.pushed
	for i := p.first; i < p.first+p.count; i++ {
		l.packet(now, &f, p, i)
	}
	l.close(l.open.Due)
	parts = int(l.waiting.pushed - before)
	l.count.Parts += uint64(parts)
	return parts
}

// sendWhole decides at once what packet would decide one by one, where that comes to the same: all of them pass, in
// one part. It returns false, and has done nothing, where it does not.
func (l *Line) sendWhole(now time.Duration, f *Frame, p Packet) bool {
	bytes, sent := f.span(uint32(p.first), uint32(p.count)), now
	if l.p.Rate != 0 {
		begin := max(now, l.free)
		work := bytes*8*uint64(time.Second) + l.owed
		took := work / l.p.Rate
		full := (begin > now || p.count > 1) && l.waitingBytes(begin-now)+float64(bytes) > float64(l.p.queue())
		if full || p.count > 1 && time.Duration(took) > tick {
			return false
		}
		l.fresh = l.fresh || now > l.free
		sent = begin + time.Duration(took)
		l.owed, l.free = work-took*l.p.Rate, sent
		if l.fresh && sent+l.p.Delay >= l.held {
			p.flags |= flagFirst
			l.fresh = false
		}
	}
	l.skip(uint64(p.count), bytes)
	l.count.Parts++
	l.push(Part{Packet: p}, sent+l.p.Delay)
	return true
}

// waitingBytes is what is sent in a time.
func (l *Line) waitingBytes(d time.Duration) float64 { return d.Seconds() * float64(l.p.Rate) / 8 }

// skip counts n packets that pass at once, without anything decided about them.
func (l *Line) skip(n, bytes uint64) {
	l.next += n
	l.count.Packets += n
	l.count.Bytes += bytes
	l.count.Passed += n
	l.count.PassedByte += bytes
}

// packet decides over packet i of a frame, which p is of.
func (l *Line) packet(now time.Duration, f *Frame, p Packet, i uint16) {
	n, bytes := l.next, f.bytes(uint32(i))
	l.next++
	l.count.Packets++
	l.count.Bytes += bytes
	fate := l.losses.next(&l.p, n)
	begin, sent, ok := l.transmit(now, bytes)
	switch {
	case !ok:
		l.count.Overflow++
	case fate == lostAlone:
		l.count.Lost++
	case fate == lostInBurst:
		l.count.LostBurst++
	default:
		l.count.Passed++
		l.count.PassedByte += bytes
		l.pass(p, i, n, begin, sent)
		return
	}
	l.close(l.open.Due)
}

// transmit says from when to when the sender is busy with a packet, or that the queue is full.
func (l *Line) transmit(now time.Duration, bytes uint64) (begin, sent time.Duration, ok bool) {
	if l.p.Rate == 0 {
		return now, now, true
	}
	begin = max(now, l.free)
	l.fresh = l.fresh || now > l.free
	if wait := l.waitingBytes(begin - now); wait > 0 && wait+float64(bytes) > float64(l.p.queue()) {
		return 0, 0, false
	}
	work := bytes*8*uint64(time.Second) + l.owed
	l.owed = work % l.p.Rate
	l.free = begin + time.Duration(work/l.p.Rate)
	return begin, l.free, true
}

// pass puts a packet that is not lost into a part.
func (l *Line) pass(p Packet, i uint16, n uint64, begin, sent time.Duration) {
	p.first, p.count = i, 1
	if p.flags &^= flagFirst; l.fresh && l.p.Rate > 0 && sent+l.p.latency() >= l.held {
		p.flags |= flagFirst
		l.fresh = false
	}
	if l.p.Reorder > 0 && draw(l.p.Seed, drawReorder, n) < l.p.Reorder {
		l.close(l.open.Due)
		l.count.Reordered++
		l.waiting.pushAny(Part{Due: sent + l.delay(n) + l.p.reorderBy(), Packet: p})
		return
	}
	if l.open.count > 0 && sent-l.began > tick {
		l.close(l.open.Due)
	}
	if l.open.count == 0 {
		l.open, l.began, l.number = Part{Packet: p}, begin, n
		l.open.count = 0
	}
	l.open.count++
	l.open.Due = sent
	if l.p.Duplicate > 0 && draw(l.p.Seed, drawDuplicate, n) < l.p.Duplicate {
		l.close(sent)
		l.count.Duplicated++
		l.push(Part{Packet: p}, sent+l.delay(n))
	}
}

// close sends the open part on its way; it was sent then.
func (l *Line) close(sent time.Duration) {
	if l.open.count == 0 {
		return
	}
	l.push(l.open, sent+l.delay(l.number))
	l.open = Part{}
}

func (l *Line) push(p Part, due time.Duration) {
	p.Due = due
	if l.p.Unordered {
		l.waiting.pushAny(p)
		return
	}
	p.Due = max(due, l.last)
	l.last = p.Due
	l.waiting.pushLast(p)
}

// delay of the packets of a part is that of packet n, its first.
func (l *Line) delay(n uint64) time.Duration {
	if l.p.Jitter == 0 {
		return l.p.Delay
	}
	u := 2*draw(l.p.Seed, drawJitter, n) - 1
	return l.p.Delay + time.Duration(u*float64(l.p.Jitter))
}

// Waiting is how many bytes wait at a time for the rate.
func (l *Line) Waiting(now time.Duration) uint64 {
	if l.p.Rate == 0 || l.free <= now {
		return 0
	}
	return uint64(float64(l.free-now) * float64(l.p.Rate) / 8e9)
}

// Due is when the next part is due; false with nothing on its way.
func (l *Line) Due() (time.Duration, bool) { return l.waiting.due() }

// Take returns the next part if it is due now.
func (l *Line) Take(now time.Duration) (Part, bool) {
	if due, ok := l.waiting.due(); !ok || due > now {
		return Part{}, false
	}
	return l.waiting.pop(), true
}
