package serving

// StuckAfter is how many looks in a row must find the same connections waiting. The first one only
// shows that they wait, so with a look each 50 ms it is 150 ms without an accept.
const StuckAfter = 4

// A Look is one sample of a listener's accept queue.
type Look struct {
	Queue   uint32 // connections that wait
	Backlog uint32 // the most that may
	// Waiting names the waiting connections by cookie. It may be nil at the first look that finds a
	// queue: asking costs a dump, and most queues are gone at the next look.
	Waiting map[uint64]bool
}

// A Queue judges one listener by looks at its accept queue. Its length alone tells nothing: a busy
// program's queue is never empty. What tells is whether any connection that waited has been accepted.
type Queue struct {
	waiting map[uint64]bool
	same    int // looks in a row without an accept
	full    int // looks in a row at which it was full
	stuck   bool
	reason  string
}

// Curious reports whether the next look must name the waiting connections.
func (q *Queue) Curious() bool { return q.same > 0 || q.stuck }

// Look takes a sample and returns why the program does not accept, or "" if it does.
func (q *Queue) Look(l Look) string {
	if l.Queue == 0 {
		*q = Queue{}
		return ""
	}
	if accepted(q.waiting, l.Waiting) {
		q.same, q.stuck, q.reason = 0, false, ""
	}
	q.same++
	q.waiting = l.Waiting
	if l.Queue > l.Backlog { // as the kernel compares: one more than the backlog waits
		q.full++
	} else {
		q.full = 0
	}
	q.judge()
	return q.reason
}

func (q *Queue) judge() {
	switch {
	case q.full > 1 && q.same > 1:
		q.stuck, q.reason = true, "accept queue is full"
	case q.same >= StuckAfter && !q.stuck:
		q.stuck, q.reason = true, "accept queue does not move"
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
