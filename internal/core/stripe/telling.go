package stripe

import (
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// tell has the news of a stream told: at once where a quarter of the window has changed, for a sender may wait for it,
// else a little later, together with what comes till then.
func (r *Receiver) tell(now time.Time, in *incoming) {
	if in.urgent {
		return
	}
	quarter := in.window() / 4
	switch {
	case in.credit-in.said.credit >= quarter || in.acknowledged-in.said.acknowledged >= quarter:
		r.hurry(in)
	case in.due.IsZero():
		in.due = now.Add(stateDelay)
		r.later.push(timed{in, in.due})
	}
}

// hurry has it told at once.
func (r *Receiver) hurry(in *incoming) {
	if !in.urgent {
		in.urgent, in.due = true, time.Time{}
		r.urgent.push(in)
	}
}

// Next is the next STATE to be sent; on any connection, before chunks. Its ranges are valid until the next call.
func (r *Receiver) Next(now time.Time) (frame.State, bool) {
	r.mature(now)
	for r.urgent.len() > 0 {
		in := r.urgent.pop()
		if !in.urgent {
			continue
		}
		in.urgent = false
		in.said = told{in.acknowledged, in.credit}
		return frame.State{
			Session: in.session, Acknowledged: in.acknowledged, Ended: in.finished, Arrived: in.arrived, Credit: in.credit,
			Ranges: in.beyond[:min(len(in.beyond), frame.MaxRanges)],
		}, true
	}
	return frame.State{}, false
}

// mature has those told whose time has come.
func (r *Receiver) mature(now time.Time) {
	for r.later.len() > 0 && !now.Before(r.later.at(0).at) {
		if t := r.later.pop(); t.in.due.Equal(t.at) {
			r.hurry(t.in)
		}
	}
}

// Deadline is when Expire should be called, and then Next, though nothing has changed; zero: never.
func (r *Receiver) Deadline() (at time.Time) {
	sooner := func(q *queue[timed], waits func(t timed) bool) {
		for q.len() > 0 && !waits(*q.at(0)) {
			q.pop()
		}
		if q.len() > 0 && (at.IsZero() || q.at(0).at.Before(at)) {
			at = q.at(0).at
		}
	}
	sooner(&r.later, func(t timed) bool { return t.in.due.Equal(t.at) })
	sooner(&r.aborts, func(t timed) bool { return t.in.over.Equal(t.at) && !t.in.finished })
	return at
}

// Expire is called at the deadline. It appends to sessions those whose ABORT takes effect now, though bytes before it are
// missing: Deliver says so.
func (r *Receiver) Expire(now time.Time, sessions []uint64) []uint64 {
	r.mature(now)
	for r.aborts.len() > 0 && !now.Before(r.aborts.at(0).at) {
		if t := r.aborts.pop(); t.in.over.Equal(t.at) && !t.in.finished {
			t.in.late = true
			sessions = append(sessions, t.in.session)
		}
	}
	return sessions
}
