package hostd

import (
	"context"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/mobility"
)

// travels is what the loop knows of where flows are and have been, for those that list them beside it.
type travels struct {
	uplinks map[int]string // by number of the interface
	moves   map[host.Tuple]uint32
}

func (l *local) travels(ctx context.Context) travels {
	t := travels{uplinks: map[int]string{}, moves: map[host.Tuple]uint32{}}
	l.inLoop(ctx, func(s *mobility.Sessions) error { //nolint:errcheck // a host without a place has no flows
		for _, p := range l.d.places.All() {
			t.uplinks[p.Index] = p.Uplink
		}
		s.Each(func(flow host.Tuple, v session.View) {
			if v.Epoch > 0 {
				t.moves[flow] = v.Epoch
			}
		})
		return nil
	})
	return t
}

// of completes the description of a flow.
func (t travels) of(f host.Flow, x *apiv1.Flow) *apiv1.Flow {
	x.Uplink, x.Moves = t.uplinks[f.Uplink], t.moves[f.Tuple]
	return x
}
