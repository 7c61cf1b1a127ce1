package boost

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/bench/process"
)

// crowdFiles is how many open files a process may need for them.
const crowdFiles = crowdSessions + 1000

// idleCrowd measures ten thousand sessions: how long each takes to begin, boosted and not, what they take of an agent's memory
// and processor, and how long one of them waits for an answer.
// Once: what they take hardly differs from run to run.
func (b *rig) idleCrowd(ctx context.Context) error {
	if err := agent.RoomFor(crowdFiles); err != nil { // agents and the server inherit it
		return err
	}
	c, err := b.crowd(ctx)
	if err != nil {
		return err
	}
	m, err := b.openMany(ctx, ownPlain, crowdSessions)
	if err != nil {
		return err
	}
	m.close()
	what := fmt.Sprintf("%d idle sessions: ", crowdSessions)
	b.add(
		bench.QuantileRow(what+"each to begin, boosted, p50", "ms", "", tookBy(m.ms, 0.5), c.begin, 0.5),
		bench.QuantileRow(what+"each to begin, boosted, p99", "ms", "", tookBy(m.ms, 0.99), c.begin, 0.99),
		bench.NewRow(what+"memory of each, at the client's agent", "KiB", "", "", c.grown[:1]),
		bench.NewRow(what+"memory of each, at the server's agent", "KiB", "", "", c.grown[1:]),
		bench.NewRow(what+"of a processor, both agents together", "%", "", "", []float64{c.busy}),
		bench.QuantileRow(what+"an answer on one of them, p50", "ms", "", "", c.asked, 0.5),
		bench.QuantileRow(what+"an answer on one of them, p99", "ms", "", "", c.asked, 0.99))
	return b.agents.RestartWith(ctx, "")
}

// tookBy is what connections without agents took.
func tookBy(ms []float64, q float64) string {
	return fmt.Sprintf("without agents: %.3g ms", bench.Quantile(ms, q))
}

// A crowded run is one of many sessions that are boosted.
type crowded struct {
	begin, asked []float64 // ms
	grown        [2]float64
	busy         float64 // percent
}

// crowdAsks is on how many of the sessions it is asked.
const crowdAsks = 200

func (b *rig) crowd(ctx context.Context) (r crowded, err error) {
	if err := b.agents.RestartWith(ctx, memoryFor(crowdSessions)); err != nil {
		return r, err
	}
	before, err := b.memories(ctx)
	if err != nil {
		return r, err
	}
	m, err := b.openMany(ctx, ownBoosted, crowdSessions)
	if err != nil {
		return r, err
	}
	defer m.close()
	carried, err := b.boostedOf(ctx, crowdSessions)
	if err != nil {
		return r, err
	}
	r.begin = m.ms
	used, began := b.agentsUsed(), time.Now()
	if err := bench.Pause(ctx, idleFor); err != nil {
		return r, err
	}
	r.busy = 100 * float64(b.agentsUsed()-used) / float64(time.Since(began))
	after, err := b.memories(ctx)
	if err != nil {
		return r, err
	}
	for i := range r.grown {
		r.grown[i] = (after[i] - before[i]) / float64(carried) / 1024
	}
	for i := range crowdAsks {
		began := time.Now()
		if err := exchangeByte(m.conns[i*len(m.conns)/crowdAsks]); err != nil {
			return r, err
		}
		r.asked = append(r.asked, float64(time.Since(began))/1e6)
	}
	return r, ctx.Err()
}

// agentsUsed is the time of processors that both agents have had.
func (b *rig) agentsUsed() time.Duration {
	return process.TreeCPU(b.agents.Keeper("x")) + process.TreeCPU(b.agents.Keeper("y"))
}
