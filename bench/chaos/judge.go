package chaos

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench"
)

// An Odd is something that did not hold.
type Odd struct {
	At   int64 // CLOCK_MONOTONIC, ns
	What string
	Flow *bench.Flow // nil where it is not about one
}

// excuse is how long after an event its consequences may still come.
const excuse = int64(3 * time.Second)

// late is how long one end may know of an end that the other has not seen.
const late = int64(10 * time.Second)

// A verdict on one flow.
type verdict uint8

const (
	open    verdict = iota // it goes on, or the other end has still to tell
	fine                   // both ends had all, and in peace
	excused                // its connection was reset, as an event explains
	condemned
)

// judge says what became of a flow, at a time; what is not empty where it is odd.
// Where there is no other server, nothing explains a reset.
func judge(f *bench.Flow, solo string, done []Happening, now int64) (v verdict, what string) {
	c, s := f.Client(), f.Server()
	switch {
	case c == nil || !c.Ended:
		return open, ""
	case f.Proto == "udp":
		return judgeDatagrams(c)
	case c.Err != "":
		return judgeReset(f, solo, done)
	case s == nil || !s.Ended:
		if crashed(s, done, c.At) {
			return fine, "" // all that it had to say had arrived
		}
		if now-c.At < late {
			return open, ""
		}
		return condemned, "its client ended it in peace, and its server did not see the end"
	case s.Err != "":
		return condemned, "its client ended it in peace, and its server says: " + s.Err
	case c.Sent != s.Received || s.Sent != c.Received:
		return condemned, fmt.Sprintf("its client sent %d bytes and got %d, its server got %d and sent %d", c.Sent, c.Received, s.Received, s.Sent)
	}
	return fine, ""
}

func judgeDatagrams(c *bench.End) (verdict, string) {
	if c.Duplicates > 0 {
		return condemned, fmt.Sprintf("%d answers came twice", c.Duplicates)
	}
	return fine, ""
}

// judgeReset looks for the event that explains why a stream broke.
func judgeReset(f *bench.Flow, solo string, done []Happening) (verdict, string) {
	c, s := f.Client(), f.Server()
	if c.Err == bench.Truncated {
		return condemned, c.Err
	}
	for _, h := range done {
		at := h.Resets()
		if c.Peer != solo && at != "" && (s == nil || at == s.Node) && h.Began <= c.At && c.At <= h.excuses() {
			return excused, ""
		}
	}
	return condemned, "its client got: " + c.Err
}

// crashed reports whether the server's process was killed about then and could not tell its end.
func crashed(s *bench.End, done []Happening, at int64) bool {
	for _, h := range done {
		if node := h.Resets(); node != "" && (s == nil || node == s.Node) && h.excuses() >= at && h.Began <= at+excuse {
			return true
		}
	}
	return false
}

// judgeAll settles what it can and returns what is odd.
func (s *stage) judgeAll(done []Happening, now int64, count *tally) (odd []Odd) {
	for _, n := range s.ledger.Wrong() {
		odd = append(odd, Odd{At: n.At, What: fmt.Sprintf("%s, %s flow %x: %s", n.Node, n.Proto, n.Flow, n.Err)})
	}
	for _, f := range s.ledger.Flows(func(f *bench.Flow) bool { return !f.Live() }) {
		v, what := judge(f, s.solo, done, now)
		if v == open {
			continue
		}
		count.settle(f, v)
		s.ledger.Forget(f)
		if v == condemned {
			odd = append(odd, Odd{At: f.Client().At, What: what, Flow: f})
		}
	}
	return odd
}

// tally counts what became of flows.
type tally struct {
	fine, excused, condemned int
	bytes                    uint64
	asked, lost, failures    uint64 // datagrams
	refused                  int    // connects
	errands, errandsFailed   int    // runs of unmodified programs that ended well, and that an event excuses
}

func (t *tally) settle(f *bench.Flow, v verdict) {
	switch v {
	case fine:
		t.fine++
	case excused:
		t.excused++
	case condemned:
		t.condemned++
	}
	c := f.Client()
	if f.Proto == "udp" {
		t.asked, t.lost, t.failures = t.asked+c.Sent, t.lost+c.Lost, t.failures+c.Failures
		return
	}
	t.bytes += c.Received
	if s := f.Server(); s != nil {
		t.bytes += s.Received
	}
}
