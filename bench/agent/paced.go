package agent

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Paced client connects, asks once and closes at a rate, however long each takes.
type Paced struct {
	To   string
	Rate int // a second
}

// A PacedResult is what became of them. Times are in ms, of those that were answered.
type PacedResult struct {
	Asked    int       `json:"asked"`
	Answered int       `json:"answered"`
	Refused  int       `json:"refused"` // by connect(), as by a closed port or a service without instance
	Took     []float64 `json:"took"`
	Error    string    `json:"error,omitempty"` // the first
}

// Run asks for d and waits for the last answer.
func (p *Paced) Run(ctx context.Context, d time.Duration) (r PacedResult) {
	answers := make(chan Request, p.Rate)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	start, ended := time.Now(), 0
	take := func(q Request) {
		ended++
		if q.Err == "" {
			r.Answered, r.Took = r.Answered+1, append(r.Took, float64(q.End-q.Start)/1e6)
			return
		}
		if strings.Contains(q.Err, unix.ECONNREFUSED.Error()) || strings.Contains(q.Err, unix.EHOSTUNREACH.Error()) {
			r.Refused++
		}
		if r.Error == "" {
			r.Error = q.Err
		}
	}
	for time.Since(start) < d && ctx.Err() == nil {
		select {
		case q := <-answers:
			take(q)
		case <-tick.C:
		}
		for due := int(time.Since(start).Seconds() * float64(p.Rate)); r.Asked < due; r.Asked++ {
			go func() { answers <- Ask(ctx, "tcp6", p.To) }() // ends within twice answerTime
		}
	}
	for ended < r.Asked {
		take(<-answers)
	}
	return r
}
