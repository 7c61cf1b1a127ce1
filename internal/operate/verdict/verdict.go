// Package verdict brings what core/health finds wrong to all who ask a daemon: its API, /healthz and its metrics. They
// say the same, for one Watch answers them all.
package verdict

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// goodFor is how long a verdict is given again: one scrape asks several times. every is how often somebody looks whom
// nobody asked, so that it is known since when something is wrong.
const (
	goodFor = 100 * time.Millisecond
	every   = 5 * time.Second
)

// limit bounds the gathering of facts: a scrape waits for it.
const limit = 2 * time.Second

// A Watch judges a daemon, or a network, when it is asked to. Its methods may be called from any goroutine.
type Watch struct {
	facts func(context.Context) health.Snapshot
	stale atomic.Bool // the last verdict is not to be given again

	mu    sync.Mutex
	taken time.Time
	last  []health.Problem
	since map[key]time.Time // when a problem was seen first that does not say it
}

// A key tells problems apart.
type key struct {
	kind  health.Kind
	where string
}

// New judges what facts returns. It is called by one goroutine at a time.
func New(facts func(context.Context) health.Snapshot) *Watch {
	return &Watch{facts: facts, since: make(map[key]time.Time)}
}

// Problems are what is wrong now, the worst first.
func (w *Watch) Problems(ctx context.Context) []health.Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stale.Swap(false) && !w.taken.IsZero() && time.Since(w.taken) < goodFor {
		return w.last
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s := w.facts(ctx)
	if ctx.Err() != nil && w.last != nil {
		return w.last // who asked went away: what was found out may be half of it
	}
	w.last, w.taken = w.dated(health.Judge(s), s.Now), time.Now()
	return w.last
}

// Again has the next question looked into anew: something has just happened.
func (w *Watch) Again() { w.stale.Store(true) }

// dated remembers since when each problem is there.
func (w *Watch) dated(all []health.Problem, now time.Time) []health.Problem {
	seen := make(map[key]time.Time, len(all))
	for i, p := range all {
		k := key{p.Kind, p.Where}
		if seen[k] = now; !p.Since.IsZero() {
			seen[k] = p.Since
		} else if before, ok := w.since[k]; ok {
			seen[k] = before
		}
		all[i].Since = seen[k]
	}
	w.since = seen
	return all
}

// Run looks now and then until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.Problems(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Export makes metrics of the problems: of each kind one at least, so that an alert ends when the problem does.
func (w *Watch) Export(m *obs.Metrics) {
	m.GaugeTable("problems", "What is wrong, as scaffold status says it: machines or services, by kind and severity.", []string{"kind", "severity"}, func(add obs.Add) {
		counts := map[[2]string]int{}
		for _, p := range w.Problems(context.Background()) {
			counts[[2]string{string(p.Kind), p.Severity.String()}] += p.Count
		}
		for _, k := range health.Kinds {
			for _, s := range []health.Severity{health.Warning, health.Critical} {
				add(float64(counts[[2]string{string(k), s.String()}]), string(k), s.String())
			}
		}
	})
}

// A line is a problem as /healthz says it.
type line struct {
	Severity string `json:"severity"`
	Kind     string `json:"kind"`
	What     string `json:"what"`
	Where    string `json:"where,omitempty"`
	Since    string `json:"since,omitempty"`
	Next     string `json:"next,omitempty"`
}

// ServeHTTP is /healthz: 200, or 503 where something is critical. Warnings are told, and leave it at 200.
func (w *Watch) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	all := w.Problems(r.Context())
	worst := health.Worst(all)
	answer := struct {
		Healthy  bool              `json:"healthy"`
		Verdict  string            `json:"verdict"`
		Wrong    map[string]string `json:"wrong,omitempty"` // by kind, what is critical
		Problems []line            `json:"problems,omitempty"`
	}{Healthy: worst < health.Critical, Verdict: worst.String()}
	for _, p := range all {
		answer.Problems = append(answer.Problems, line{p.Severity.String(), string(p.Kind), p.What, p.Where, stamp(p.Since), p.Next})
		if p.Severity == health.Critical {
			if answer.Wrong == nil {
				answer.Wrong = map[string]string{}
			}
			answer.Wrong[string(p.Kind)] = p.What
		}
	}
	to.Header().Set("Content-Type", "application/json")
	if !answer.Healthy {
		to.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(to).Encode(answer) //nolint:errcheck // the caller is gone
}
