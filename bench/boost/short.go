package boost

import (
	"context"
	"fmt"
	"sync"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/agent"
)

// shortRate is how many connections begin in a second, whether those before them have ended or not.
const shortRate = 1000

// shortFor is how long they do.
const shortFor = 4 * time.Second

// shorts measures how long connections take that ask once and end, a thousand a second, boosted and not.
func (b *rig) shorts(ctx context.Context) error {
	sides := []struct {
		name string
		port uint16
		ms   []float64
		lost []float64
	}{{"boosted", ownBoosted, nil, nil}, {"without agents", ownPlain, nil, nil}}
	for run := range b.runs() {
		for place := range sides {
			s := &sides[turn(run, place, len(sides))]
			took, failed, err := b.short(ctx, s.port)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if len(failed) > 0 {
				b.note("%d connections a second, %s, run %d: %d failed, the first one: %v", shortRate, s.name, run+1, len(failed), failed[0])
			}
			s.ms, s.lost = append(s.ms, took...), append(s.lost, float64(len(failed)))
		}
	}
	for _, s := range sides {
		for _, q := range []struct {
			name string
			at   float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			b.add(bench.QuantileRow(fmt.Sprintf("%d connections a second, connect to answer, %s, %s", shortRate, s.name, q.name), "ms", "", "", s.ms, q.at))
		}
		b.add(bench.NewRow(fmt.Sprintf("%d connections a second for %v, %s: failed", shortRate, shortFor, s.name), "", "", "", s.lost))
	}
	return nil
}

// short opens connections at their rate; failed is why those failed that did.
func (b *rig) short(ctx context.Context, port uint16) (ms []float64, failed []error, err error) {
	l, err := b.agents.Listen(ctx, port)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	go agent.AnswerAll(l) // ends with l
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for i := range int(shortFor.Seconds() * shortRate) {
		if err := bench.Pause(ctx, time.Until(began.Add(time.Duration(i)*time.Second/shortRate))); err != nil {
			break
		}
		all.Go(func() {
			c, took, err := b.open(port)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return
			}
			c.Close()
			ms = append(ms, float64(took)/1e6)
		})
	}
	all.Wait()
	return ms, failed, ctx.Err()
}
