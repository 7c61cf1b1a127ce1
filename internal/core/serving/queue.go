package serving

import "time"

// StuckAfter is how many looks in a row must find the same connections waiting at a program that is stopped. The first
// one only shows that they wait, so with a look each 50 ms it is 150 ms without an accept.
const StuckAfter = 4

// A Look is one sample of a listener's accept queue.
type Look struct {
	Elapsed time.Duration // since the last look
	Queue   uint32        // connections that wait
	Backlog uint32        // the most that may
	// Waiting names the waiting connections by cookie. It may be nil at the first look that finds a
	// queue: asking costs a dump, and most queues are gone at the next look.
	Waiting map[uint64]bool
	Program Program
}

// A Queue judges one listener by looks at its accept queue. Its length alone tells nothing: a busy program's queue is
// never empty. Nor does the clock: a program without a processor accepts nothing. What tells is whether any connection
// that waited has been accepted in the time that the program had, beside what it usually takes.
type Queue struct {
	pace
	waiting map[uint64]bool
	full    int // looks in a row at which it was full
	verdict Verdict
}

// Curious reports whether the next look must name the waiting connections, and say what the program did.
func (q *Queue) Curious() bool { return q.looks > 0 || q.verdict.Reason != "" }

// Look takes a sample and returns why the program does not accept.
func (q *Queue) Look(l Look) Verdict {
	if l.Queue == 0 {
		q.accept()
		q.waiting, q.full, q.verdict = nil, 0, Verdict{}
		return q.verdict
	}
	if accepted(q.waiting, l.Waiting) {
		q.accept()
		q.verdict = Verdict{}
	}
	q.wait(l.Elapsed, l.Program)
	q.waiting = l.Waiting
	if l.Queue > l.Backlog { // as the kernel compares: one more than the backlog waits
		q.full++
	} else {
		q.full = 0
	}
	q.judge(l.Program)
	return q.verdict
}

// Why a program does not accept, as people are told.
const (
	queueStands = "accept queue does not move"
	queueFull   = "accept queue is full"
)

func (q *Queue) judge(prog Program) {
	prog.Partly = false // the rest of it may accept
	late, slow := q.late(prog)
	switch {
	case late:
		q.verdict = Verdict{Reason: queueStands, Slow: slow}
	case q.full > 1 && q.looks > 1:
		q.verdict = Verdict{Reason: queueFull, Slow: true}
	}
}

// accepted reports whether a connection that waited does no longer. Nothing is known from the first
// naming.
func accepted(before, now map[uint64]bool) bool {
	for cookie := range before {
		if !now[cookie] {
			return true
		}
	}
	return false
}
