package session

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// timers is a heap of wishes: one whose flow wants something else by now is passed over.
type timers []wish

type wish struct {
	at time.Time
	f  *flow
}

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *timers) Push(x any) { *t = append(*t, x.(wish)) }

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

func (t *timers) add(at time.Time, f *flow) { heap.Push(t, wish{at, f}) }

// perFlow is what each flow that waits for an answer adds to the first wait: the peer works through all of
// them, and asked again too early it has twice the work.
const perFlow = 40 * time.Microsecond

// arm begins the retransmissions of a state.
func (e *Engine) arm(now time.Time, f *flow) {
	first := e.cfg.Times.First
	if f.state == Moving {
		first = e.cfg.Times.Claim
	}
	f.tries, f.waits, f.wait = 0, 0, min(first+time.Duration(e.open+e.leaving)*perFlow, e.cfg.Times.Most)
	f.timer = now.Add(f.wait)
	e.timers.add(f.timer, f)
}

// While more flows than this wait, and claims of peers came in so lately, nothing is asked again, at most so often
// for one flow: the peers are at work, and what they are asked twice they must answer twice.
const (
	patientOver  = 64
	patientFor   = 100 * time.Millisecond
	mostPatience = 40
)

// patient puts the flow's timer off where that is so.
func (e *Engine) patient(now time.Time, f *flow) bool {
	if e.open <= patientOver || now.Sub(e.lastHeard) >= patientFor || f.waits == mostPatience {
		return false
	}
	f.waits++
	f.timer = now.Add(f.wait)
	e.timers.add(f.timer, f)
	return true
}

// workFor is how long a great move may hear of no peer until those that have not answered count as unreachable: on a
// busy host seconds pass between two messages.
const workFor = 5 * time.Second

// atWork: the flow has asked as often as it may, but among so many that the peers may not have come to it yet.
func (e *Engine) atWork(now time.Time, f *flow) bool {
	return (f.state == Moving || f.state == Answering) && e.open > patientOver && now.Sub(e.lastHeard) < workFor
}

// again arms the next retransmission.
func (e *Engine) again(now time.Time, f *flow) {
	f.tries++
	f.wait = min(2*f.wait, e.cfg.Times.Most)
	f.timer = now.Add(f.wait)
	e.timers.add(f.timer, f)
}

// Deadline is when Expire may have something to do; zero when it has not.
func (e *Engine) Deadline() time.Time {
	if len(e.timers) == 0 {
		return time.Time{}
	}
	return e.timers[0].at
}

// Expire fires the timers that now has reached, in the order in which the flows were added.
func (e *Engine) Expire(now time.Time) {
	var due []*flow
	for len(e.timers) > 0 && !now.Before(e.timers[0].at) {
		due = append(due, heap.Pop(&e.timers).(wish).f)
	}
	slices.SortFunc(due, func(a, b *flow) int { return cmp.Compare(a.serial, b.serial) })
	for _, f := range slices.Compact(due) {
		e.expire(now, f)
	}
}

func (e *Engine) expire(now time.Time, f *flow) {
	if f.state == Closed {
		e.repeatNotice(now, f)
		if t, ok := e.ended[f.Key]; ok && !now.Before(t.until) {
			e.forgetEnded(f.Key)
		}
		return
	}
	e.outlive(now, f)
	if !f.timer.IsZero() && !now.Before(f.timer) {
		f.timer = time.Time{}
		e.fire(now, f)
	}
}

// outlive forgets the addresses whose grace time is over.
func (e *Engine) outlive(now time.Time, f *flow) {
	over := func(r retired) bool { return !r.until.IsZero() && !now.Before(r.until) }
	gone := slices.DeleteFunc(slices.Clone(f.old), func(r retired) bool { return !over(r) })
	if len(gone) == 0 {
		return
	}
	f.old = slices.DeleteFunc(f.old, over)
	for _, r := range gone {
		if !f.owns(r.Socket) {
			delete(e.bySocket, r.Socket)
			e.change(Change{Kind: Drop, Key: f.Key, Local: r.Addr})
		}
	}
	e.touch(f)
}
