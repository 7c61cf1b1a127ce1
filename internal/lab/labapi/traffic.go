package labapi

import (
	"context"
	"time"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// GetTraffic gives counters: who asks twice has rates.
func (s calls) GetTraffic(_ context.Context, q *labv1.LabName) (*labv1.Traffic, error) {
	l, err := s.open(q.Lab)
	if err != nil {
		return nil, err
	}
	at := float64(time.Now().UnixMicro()) / 1e6
	return as(&labv1.Traffic{}, map[string]any{"at_s": at, "links": l.Traffic()})
}
