package bench

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// Hogs runs eight processes that only burn CPU for d and counts the hosts that were declared gone
// although nothing happened to them.
func Hogs(ctx context.Context, r *Rig, d time.Duration) (Report, error) {
	var rep Report
	before, err := r.Events(ctx)
	if err != nil {
		return rep, err
	}
	const hogs = 8
	for range hogs {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			return rep, err
		}
		defer cmd.Wait()         //nolint:errcheck // killed
		defer cmd.Process.Kill() // it cannot have ended
	}
	select {
	case <-ctx.Done():
		return rep, ctx.Err()
	case <-time.After(d):
	}
	after, err := r.Events(ctx)
	if err != nil {
		return rep, err
	}
	kinds := map[string]int{}
	for _, e := range after {
		if len(before) == 0 || e.Seq > before[len(before)-1].Seq {
			kinds[e.Kind]++
		}
	}
	rep.Rows = []Row{
		NewRow(fmt.Sprintf("false leaves in %v with %d CPU hogs", d, hogs), "hosts", "= 0", "", []float64{float64(kinds["host.gone"] + kinds["host.leave"])}),
		NewRow("false suspicions meanwhile (undone by one answer)", "hosts", "", "", []float64{float64(kinds["host.suspect"])}),
	}
	return rep, nil
}
