package host

import (
	"container/heap"
	"time"

	"scaffold.dev/scaffold/sid"
)

// How a refusal of a connecting flow is handled. An ICMPv6 error that arrives while connect() still holds
// its socket is lost and the program would wait for the next SYN; so it comes a moment later, and again: soon,
// and after the time for which a busy machine may keep a program from running. "No
// such port" (code 4) is held back: a restart in progress goes unseen, docs/protocol.md §3.5. So is that of a
// datagram, which is sent again if the error quotes all of it; its socket is told once, as each error counts.
const (
	injectDelay = 300 * time.Microsecond
	injectAgain = 5 * time.Millisecond
	injectLast  = 40 * time.Millisecond
	retryFirst  = 2 * time.Millisecond
	holdLimit   = 20 * time.Millisecond
	answerLimit = 500 * time.Millisecond // for the answer to a question: a switch asks its controller; then the kernel asks

	noSuchPort = 4
)

// An Action is what Refusals wants done with an event.
type Action struct {
	Retry bool // ask the network again; false: tell the socket
	Event Event
}

// Refusals decides when refused sockets are told. It is sans I/O: the daemon feeds it events of kind Refused,
// calls Expire at Deadline, and gives what Drain returns to Edge.Retry and Edge.InjectRefusal.
type Refusals struct {
	held map[refused]*hold
	due  agenda
	out  []Action
}

// refused names one attempt to connect.
type refused struct {
	id  sid.SocketID
	isn uint32
}

type hold struct {
	key    refused
	place  int // in the agenda
	event  Event
	since  time.Time
	next   time.Time     // when something is to be done
	wait   time.Duration // before the next question
	answer bool          // the last question was refused; false: nobody has answered yet
	told   int           // copies sent to the socket
}

// NewRefusals returns an empty Refusals.
func NewRefusals() *Refusals { return &Refusals{held: map[refused]*hold{}} }

// Handle takes a refusal.
func (r *Refusals) Handle(now time.Time, ev Event) {
	key := refused{ev.ID, ev.ISN}
	h := r.held[key]
	if h == nil {
		h = &hold{key: key, since: now, next: now, wait: retryFirst}
		r.held[key] = h
		heap.Push(&r.due, h)
	}
	if h.told > 0 {
		return // a late answer to an old question
	}
	h.event, h.answer = ev, true
	defer func() { heap.Fix(&r.due, h.place) }()
	if ev.Code == noSuchPort && ev.repeatable() && now.Add(h.wait).Before(h.since.Add(holdLimit)) {
		h.next = now.Add(h.wait)
		return
	}
	h.wait = 0
	h.next = now.Add(injectDelay)
}

// Expire does what is due.
func (r *Refusals) Expire(now time.Time) {
	for len(r.due) > 0 && !now.Before(r.due[0].next) {
		h := r.due[0]
		if r.step(now, h) {
			heap.Fix(&r.due, 0)
			continue
		}
		heap.Pop(&r.due)
		delete(r.held, h.key)
	}
}

// step reports whether the attempt is still worth remembering.
func (r *Refusals) step(now time.Time, h *hold) bool {
	switch {
	case !h.answer:
		return false // the last question was not refused: the flow is bound, or the kernel will ask again
	case h.wait > 0:
		r.out = append(r.out, Action{Retry: true, Event: h.event})
		h.answer, h.wait = false, 2*h.wait
		h.next = now.Add(answerLimit) // from now: a question that was asked late has its time, too
		return true
	}
	r.out = append(r.out, Action{Event: h.event})
	if h.told++; h.told == 1 {
		h.next = now.Add(injectAgain)
	} else {
		h.next = now.Add(injectLast)
	}
	return h.told < h.event.copies()
}

// Deadline is when Expire has something to do; zero when it has not.
func (r *Refusals) Deadline() time.Time {
	if len(r.due) == 0 {
		return time.Time{}
	}
	return r.due[0].next
}

// An agenda is a heap, what is due first on top: a thousand connects may be refused at the same moment.
type agenda []*hold

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].next.Before(a[j].next) }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push is for container/heap.
func (a *agenda) Push(x any) {
	h := x.(*hold)
	h.place = len(*a)
	*a = append(*a, h)
}

// Pop is for container/heap.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	h := (*a)[last]
	*a = (*a)[:last]
	return h
}

// copies is how often the socket has to be told.
func (ev Event) copies() int {
	if ev.Proto == sid.UDP {
		return 1
	}
	return 3
}

// Drain returns what is to be done now, in order.
func (r *Refusals) Drain() []Action {
	out := r.out
	r.out = nil
	return out
}
