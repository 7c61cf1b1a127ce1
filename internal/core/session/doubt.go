package session

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// How a host is asked whether it is there, docs/protocol.md §6.4. Its kernel answers, so that a busy daemon is
// not taken for a dead host; four PROBEs, so that a lossy path is not taken for a broken one.
const (
	doubtProbes  = 4
	doubtEvery   = 15 * time.Millisecond
	doubtLast    = 60 * time.Millisecond // for the last answer, where nobody knows the round trip,
	doubtLeast   = 20 * time.Millisecond // and at least and at most where it is known
	doubtMost    = time.Second
	doubtLate    = 5 * time.Millisecond // a wait of which this host was late to see the end is not counted,
	doubtForgive = 8                    // so often
)

// A Doubts asks the hosts whose first-hop routers hear nothing of them. It has no clock, and belongs to one
// goroutine. The zero value is ready.
type Doubts struct {
	open map[sid.Locator]*doubt
	out  []Outgoing
}

// doubt is one host that is being asked.
type doubt struct {
	from     sid.Locator
	nonce    uint64
	asked    int
	forgiven int
	last     time.Duration
	due      time.Time
}

// Raise begins to ask the host at a locator, from one of ours; nonce is random. One that is being asked already
// is not asked twice.
func (d *Doubts) Raise(now time.Time, from, to sid.Locator, nonce uint64) {
	if d.open[to] != nil {
		return
	}
	if d.open == nil {
		d.open = map[sid.Locator]*doubt{}
	}
	d.open[to] = &doubt{from: from, nonce: nonce, last: doubtLast}
	d.ask(now, to, d.open[to])
}

// Expect tells how long the host's answers take.
func (d *Doubts) Expect(to sid.Locator, roundTrip time.Duration) {
	if x := d.open[to]; x != nil {
		x.last = min(max(2*roundTrip, doubtLeast), doubtMost)
	}
}

func (d *Doubts) ask(now time.Time, to sid.Locator, x *doubt) {
	d.out = append(d.out, Outgoing{From: x.from.Host(), To: to.Host(), Message: wire.Probe{Header: wire.Header{Nonce: x.nonce}}})
	x.asked++
	x.due = now.Add(doubtEvery)
	if x.asked >= doubtProbes {
		x.due = now.Add(x.last)
	}
}

// Answered takes a PROBE-ACK to this host. True where it ends a doubt: the host at the locator is there.
func (d *Doubts) Answered(nonce uint64) (at sid.Locator, ok bool) {
	for l, x := range d.open {
		if x.nonce == nonce { // whoever answers: what comes for a place that was left is sent after its host
			delete(d.open, l)
			return l, true
		}
	}
	return 0, false
}

// Expire asks again, and returns the locators at which nobody answers. The caller has handed over all answers
// that it has seen. Where it comes late there may be others, and where it excuses the host it knows better: then
// the host is asked once more instead.
func (d *Doubts) Expire(now time.Time, excused func(sid.Locator) bool) (silent []sid.Locator) {
	for _, l := range slices.SortedFunc(maps.Keys(d.open), cmp.Compare[sid.Locator]) {
		x := d.open[l]
		if now.Before(x.due) {
			continue
		}
		late := now.Sub(x.due) > doubtLate || x.asked == doubtProbes && excused(l)
		if late && x.forgiven < doubtForgive {
			x.forgiven++
			x.asked--
		}
		if x.asked < doubtProbes {
			d.ask(now, l, x)
			continue
		}
		delete(d.open, l)
		silent = append(silent, l)
	}
	return silent
}

// Deadline is when Expire has something to do; zero when it has not.
func (d *Doubts) Deadline() (at time.Time) {
	for _, x := range d.open {
		if at.IsZero() || x.due.Before(at) {
			at = x.due
		}
	}
	return at
}

// Drain returns the PROBEs to send since the last call.
func (d *Doubts) Drain() []Outgoing {
	out := d.out
	d.out = nil
	return out
}
