package bench

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// crowdMoves is how often the crowd's host moves.
const crowdMoves = 5

// crowd measures how long it takes until all of many flows go on that are on a host that moves. Each has a
// byte under way when the link is back.
func (b *moveBench) crowd(ctx context.Context) error {
	s, err := serve(b.Rig, moveServer, b.target)
	if err != nil {
		return err
	}
	defer s.Kill() //nolint:errcheck // the lab ends with the bench
	if err := awaitServing(ctx, b.Rig, b.service, 2); err != nil {
		return err
	}
	if err := b.FreePorts(ctx, moveClient); err != nil {
		return err
	}
	g, err := gather(b.Rig, moveClient, "tcp6", b.target, b.size.Crowd)
	if err != nil {
		return err
	}
	defer g.close()
	var last []float64
	resets := int64(0)
	for range crowdMoves {
		if err := b.unplug(ctx, moveClient, 100*time.Millisecond); err != nil {
			return err
		}
		if _, err := g.tell("ask"); err != nil {
			return err
		}
		if err := Pause(ctx, between); err != nil {
			return err
		}
		at, err := b.plugIn(ctx, moveClient)
		if err != nil {
			return err
		}
		r, err := g.until(ctx, "report", moveLimit, func(r agent.CrowdReport) bool { return r.Answers >= int64(b.size.Crowd) })
		if err != nil {
			return fmt.Errorf("the host with the crowd moved: %w", err)
		}
		last, resets = append(last, float64(r.Last-at)/1e6), resets+r.Resets+r.Others
		if err := Pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	b.rep.Rows = append(b.rep.Rows,
		NewRow(fmt.Sprintf("%d flows on a host that moves: link up to the last one answered", b.size.Crowd), "ms", "<= 500", "", last),
		NewRow("of those, connections that broke", "", "= 0", "", []float64{float64(resets)}))
	return nil
}
