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

	forbidden  = 1
	noSuchPort = 4
)

// NoSuchPort reports whether the network knows who serves the service, and of nobody who has the port.
func (ev Event) NoSuchPort() bool { return ev.Code == noSuchPort }

// An Action is what Refusals wants done with an event.
type Action struct {
	Retry bool // ask again; false: tell the socket
	Event Event
	Label sid.Label   // of a question: who has refused already
	To    sid.Locator // whom to ask; 0: the network
}

// Refusals decides when refused sockets are told. It is sans I/O: the daemon feeds it events of kind Refused,
// calls Expire at Deadline, and gives what Drain returns to Edge.Retry and Edge.InjectRefusal.
type Refusals struct {
	recentPeers func(Event) []sid.Locator
	held        map[refused]*hold
	due         agenda
	out         []Action
}

// refused names one attempt to connect.
type refused struct {
	id  sid.SocketID
	isn uint32
}

type hold struct {
	key      refused
	place    int   // in the agenda
	event    Event // what the network said last
	since    time.Time
	next     time.Time // when something is to be done
	what     task
	wait     time.Duration // before the next question to the network
	answer   bool          // the last question was refused; false: nobody has answered yet
	asked    uint8         // questions to the network so far, the program's own counts
	lost     bool          // the network found no way once: the socket is not told, its kernel asks again
	told     int           // copies sent to the socket
	question question      // to hosts, by themselves
}

// A task is what a hold is to do next.
type task uint8

const (
	tellSocket task = iota
	askNetwork
	askHost
)

// NewRefusals returns an empty Refusals. recentPeers are whom to ask beside the network: Edge.RecentPeers, or nobody.
func NewRefusals(recentPeers func(Event) []sid.Locator) *Refusals {
	return &Refusals{recentPeers: recentPeers, held: map[refused]*hold{}}
}

// Handle takes a refusal.
func (r *Refusals) Handle(now time.Time, ev Event) {
	key := refused{ev.ID, ev.ISN}
	h := r.held[key]
	if h == nil {
		h = &hold{key: key, event: ev, since: now, next: now, wait: retryFirst, asked: 1}
		if ev.Code != forbidden && !ev.lost() && ev.repeatable() {
			h.question.open = r.recentPeers(ev)
		}
		r.held[key] = h
		heap.Push(&r.due, h)
	}
	if h.told > 0 || !h.question.take(ev) {
		return // a late answer to an old question
	}
	if h.question.to == 0 {
		h.event, h.lost = ev, h.lost || ev.lost()
	}
	h.answer = true
	h.plan(now)
	heap.Fix(&r.due, h.place)
}

// plan says what is to be done next, and when.
func (h *hold) plan(now time.Time) {
	end := h.since.Add(holdLimit)
	held := (h.event.Code == noSuchPort || h.event.lost()) && h.event.repeatable()
	if h.event.Code != forbidden && h.event.repeatable() {
		if at, ok := h.question.at(now, h.since); ok {
			h.what, h.next = askHost, at
			return
		}
	}
	switch {
	// The last question is asked when the time is over, however late the one before was answered.
	case held && now.Before(end):
		h.what, h.next = askNetwork, now.Add(h.wait)
		if h.next.After(end) {
			h.next = end
		}
	case held && h.question.late: // much may have happened since the network was asked
		h.what, h.next = askNetwork, now
	default:
		h.what, h.next = tellSocket, now.Add(injectDelay)
	}
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
	case !h.answer && (h.question.to == 0 || h.event.Proto == sid.UDP):
		return false // the last question was not refused: the flow is bound, or the kernel will ask again
	case !h.answer: // the flow is bound, and Edge.Retry leaves it alone; or that host is gone
		h.question.silent()
		h.answer = true
		h.plan(now)
		return true
	case h.what == askNetwork:
		r.out = append(r.out, Action{Retry: true, Event: h.event, Label: h.label()})
		h.question.toNetwork()
		h.asked++
		h.answer, h.wait = false, 2*h.wait
		h.next = now.Add(answerLimit) // from now: a question that was asked late has its time, too
		return true
	case h.what == askHost:
		r.out = append(r.out, Action{Retry: true, Event: h.event, To: h.question.next()})
		h.answer = false
		h.next = now.Add(silenceLimit)
		return true
	case h.lost:
		return false
	}
	r.out = append(r.out, Action{Event: h.event})
	if h.told++; h.told == 1 {
		h.next = now.Add(injectAgain)
	} else {
		h.next = now.Add(injectLast)
	}
	return h.told < h.event.copies()
}

// label leaves out the host that has reset the connection, since its kernel has no listener and its edge does not know
// that, and the host to which a router found no way. Where an edge or a router refused, all were asked, and all are asked
// again: one of them may be about to restart.
func (h *hold) label() sid.Label {
	if h.event.Refuser == 0 {
		return 0
	}
	return sid.NewLabel(sid.Locator(h.event.Refuser), h.asked)
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

// lost says that a router found no way to the instance that was chosen, which is no refusal: there may be another one, and
// other ways.
func (ev Event) lost() bool { return ev.Code != noSuchPort && ev.Refuser != 0 }

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
