package boost

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// queueEach is how often it is looked how long packets wait on the path.
const queueEach = 200 * time.Millisecond

// queues are how long packets waited, in ms, in each run of a contender.
type queues [][]float64

// watched has it looked how long packets wait on the path while a contender runs.
func (b *rig) watched(c *contender) *queues {
	q, run := new(queues), c.run
	c.run = func(ctx context.Context) (float64, error) {
		looking, end := context.WithCancel(ctx)
		looked := make(chan []float64, 1)
		go func() { looked <- b.queue(looking) }()
		rate, err := run(ctx)
		end()
		*q = append(*q, <-looked)
		return rate, err
	}
	return q
}

// of are all that was seen, each blamed as its run is.
func (q queues) of(runs []outcome) (all []outcome) {
	for i, seen := range q {
		for _, ms := range seen {
			all = append(all, outcome{ms, runs[i].blame})
		}
	}
	return all
}

// queue looks how long packets wait on the path between the agents, until ctx ends, by what the kernel of the agent that
// sends has measured: the least round trip of its connections now, less the shortest that any has seen.
func (b *rig) queue(ctx context.Context) (ms []float64) {
	begin := time.After(settle)
	for {
		select {
		case <-ctx.Done():
			return ms
		case <-begin:
			begin = time.After(queueEach)
		}
		out, err := b.trunk(ctx)
		if err != nil {
			continue // ctx has ended, or the agent has none at this moment
		}
		if wait := waiting(out); !math.IsInf(wait, 1) {
			ms = append(ms, wait)
		}
	}
}

// trunk is what ss says of the near agent's connections to the far one, two lines for each.
func (b *rig) trunk(ctx context.Context) (string, error) {
	out, err := b.lab.Output(ctx, "x", "ss", "-tinH", "dport", "=", ":23731")
	return string(out), err
}

// waiting reads what ss says of connections, in ms; infinite where nothing was measured.
func waiting(text string) float64 {
	now, least := math.Inf(1), math.Inf(1)
	for word := range strings.FieldsSeq(text) {
		var v float64
		if n, _ := fmt.Sscanf(word, "rtt:%f", &v); n == 1 {
			now = min(now, v)
		}
		if n, _ := fmt.Sscanf(word, "minrtt:%f", &v); n == 1 {
			least = min(least, v)
		}
	}
	if math.IsInf(now, 1) {
		return now
	}
	return max(now-least, 0)
}
