package demo

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Request is one HTTP request of the load as its client saw it.
type Request struct {
	Start, End time.Time
	Server     string // the node that answered
	Err        string // "" when answered with 200
	client     int    // makes one after the other
}

// Requests is the growing record of one load. Its readers wait for what they look for.
type Requests struct {
	mu    sync.Mutex
	cond  *sync.Cond
	all   []Request
	done  bool
	pause time.Duration // at least, from the beginning of one request of a client to that of its next one
}

// NewRequests makes an empty record of clients that begin a request at most once in so long; 0: once the last has ended.
func NewRequests(pause time.Duration) *Requests {
	r := &Requests{pause: pause}
	r.cond = sync.NewCond(&r.mu)
	return r
}

// Add records one request.
func (r *Requests) Add(q Request) {
	r.mu.Lock()
	r.all = append(r.all, q)
	r.mu.Unlock()
	r.cond.Broadcast()
}

// Close says that no more will come.
func (r *Requests) Close() {
	r.mu.Lock()
	r.done = true
	r.mu.Unlock()
	r.cond.Broadcast()
}

// Mark is the number of requests so far, for Since and Await.
func (r *Requests) Mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// Since returns the requests after mark.
func (r *Requests) Since(mark int) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	some := append([]Request(nil), r.all[mark:]...)
	r.correct(some)
	return some
}

// correct moves beginnings back to where they can have been at the latest. A line of curl says how long its request took,
// not when it ended, and on a busy machine it is read late: one that was refused before anybody served would seem to have
// begun after the first answer. But its client's next request began a pause later at least, or more, and not all lines are
// read late.
func (r *Requests) correct(some []Request) {
	next := map[int]time.Time{}
	for i := len(some) - 1; i >= 0; i-- {
		q := &some[i]
		if after, ok := next[q.client]; ok {
			if latest := after.Add(-max(r.pause, q.End.Sub(q.Start))); q.Start.After(latest) {
				q.Start, q.End = latest, latest.Add(q.End.Sub(q.Start))
			}
		}
		next[q.client] = q.Start
	}
}

// Await returns the first request after mark that fits, or false at the deadline or the load's end.
func (r *Requests) Await(mark int, limit time.Duration, fits func(Request) bool) (Request, bool) {
	deadline := time.Now().Add(limit)
	wake := time.AfterFunc(limit, r.cond.Broadcast)
	defer wake.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for ; mark < len(r.all); mark++ {
			if fits(r.all[mark]) {
				return r.all[mark], true
			}
		}
		if r.done || !time.Now().Before(deadline) {
			return Request{}, false
		}
		r.cond.Wait()
	}
}

// AwaitCount waits until n requests came after mark.
func (r *Requests) AwaitCount(mark, n int, limit time.Duration) bool {
	seen := 0
	_, ok := r.Await(mark, limit, func(Request) bool { seen++; return seen >= n })
	return ok
}

// curlFormat makes curl end each transfer with one line that parseCurl understands; the body before
// it is the server's name. The line goes to standard error, which curl does not buffer: it must
// arrive when the transfer ends, also when there was no body.
const curlFormat = `%{stderr}#%{http_code} %{time_total} %{errormsg}\n`

// parseCurl reads the output of a curl that runs with curlFormat until it ends.
func parseCurl(out io.Reader, add func(Request)) {
	lines := bufio.NewScanner(out)
	lines.Split(wholeLines)
	var body string
	for lines.Scan() {
		line := lines.Text()
		status, isStatus := strings.CutPrefix(line, "#")
		if !isStatus {
			body = strings.TrimSpace(line)
			continue
		}
		add(curlRequest(status, body, time.Now()))
		body = ""
	}
}

// wholeLines leaves out a last line without its end: curl writes a line in pieces, and may be ended in the middle.
func wholeLines(data []byte, _ bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}

// curlRequest makes a Request of the status line; curl reports how long it took, the line's arrival
// says when it ended.
func curlRequest(status, body string, now time.Time) Request {
	parts := strings.SplitN(status, " ", 3)
	q := Request{Start: now, End: now, Server: serverOf(body)}
	if len(parts) < 2 {
		q.Err = "unreadable output of curl: " + status
		return q
	}
	if sec, err := strconv.ParseFloat(parts[1], 64); err == nil {
		q.Start = now.Add(-time.Duration(sec * float64(time.Second)))
	}
	switch {
	case parts[0] != "200" && len(parts) == 3 && parts[2] != "":
		q.Err = parts[2]
	case parts[0] != "200":
		q.Err = "HTTP status " + parts[0]
	case len(parts) == 3 && parts[2] != "":
		q.Err = parts[2] // an answer that broke off
	}
	return q
}

// A Tally sums requests up by server.
type Tally struct {
	ByServer map[string]int
	Failed   []Request
}

// Count sums requests up.
func Count(requests []Request) Tally {
	t := Tally{ByServer: map[string]int{}}
	for _, q := range requests {
		if q.Err != "" {
			t.Failed = append(t.Failed, q)
			continue
		}
		t.ByServer[q.Server]++
	}
	return t
}

// LastFailedStart is how long after event the last request began that failed, 0 if none began later.
func (t Tally) LastFailedStart(event time.Time) time.Duration {
	var last time.Duration
	for _, q := range t.Failed {
		last = max(last, q.Start.Sub(event))
	}
	return last
}

// serverOf reads the page of examples/web.yaml.
func serverOf(body string) string {
	return strings.TrimPrefix(strings.TrimSpace(body), "hello from ")
}
