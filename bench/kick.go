package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/bpf/kick/breaks"
)

// kickRTOMin is what hosts set on their service routes, in ms: above the 40 ms of delayed acknowledgements.
const kickRTOMin = 45

// kickCuts are the lengths of the breaks that are measured.
var kickCuts = []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}

// stalls are samples in milliseconds.
type stalls struct{ all, mover, other []float64 }

func (s *stalls) add(one breaks.Stall) {
	m, o := one.MoverSends.Seconds()*1e3, one.OtherSends.Seconds()*1e3
	s.mover, s.other = append(s.mover, m), append(s.other, o)
	s.all = append(s.all, m, o)
}

// Kick measures how long TCP streams stand still after a break, with the kick and without, in alternating
// pairs, and what it takes to kick a crowd of connections.
func Kick(ctx context.Context, times, crowd int) (rep Report, err error) {
	n, err := breaks.New(kickRTOMin)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	var with, without stalls
	for _, gone := range kickCuts {
		a, b, err := stallPairs(ctx, n, gone, times)
		if err != nil {
			return rep, err
		}
		what := fmt.Sprintf("cut for %v, ", gone)
		rep.Rows = append(rep.Rows,
			NewRow(what+"moving host sends: link to first byte", "ms", "", peerMedian(b.mover), a.mover),
			NewRow(what+"other host sends: link to first byte", "ms", "", peerMedian(b.other), a.other))
		with.all, without.all = append(with.all, a.all...), append(without.all, b.all...)
	}
	rep.Rows = append(rep.Rows,
		NewRow("all cuts, kicked: p50", "ms", "<= 15", peerMedian(without.all), with.all),
		QuantileRow("all cuts, kicked: p99", "ms", "<= 60", "", with.all, 0.99),
		NewRow("all cuts, not kicked: p50", "ms", "", "", without.all),
		QuantileRow("all cuts, not kicked: p99", "ms", "", "", without.all, 0.99))
	rep.Notes = append(rep.Notes, fmt.Sprintf("streams of 2 MB/s; rto_min %d ms and quickack on the routes; every byte was checked", kickRTOMin))
	rows, err := kickCrowd(ctx, n, crowd)
	rep.Rows = append(rep.Rows, rows...)
	return rep, err
}

func peerMedian(samples []float64) string {
	return fmt.Sprintf("no kick: %s ms", Short(Quantile(samples, 0.5)))
}

func stallPairs(ctx context.Context, n *breaks.Network, gone time.Duration, times int) (with, without stalls, err error) {
	for range times {
		a, err := n.Stall(ctx, gone, true)
		if err != nil {
			return with, without, err
		}
		b, err := n.Stall(ctx, gone, false)
		if err != nil {
			return with, without, err
		}
		with.add(a)
		without.add(b)
	}
	return with, without, nil
}

// crowdTimes is how often the crowd is kicked, and not.
const crowdTimes = 3

func kickCrowd(ctx context.Context, n *breaks.Network, count int) ([]Row, error) {
	if count == 0 {
		return nil, nil
	}
	var look, kick, last, alone []float64
	for range crowdTimes {
		a, err := n.Crowd(ctx, count, true)
		if err != nil {
			return nil, err
		}
		b, err := n.Crowd(ctx, count, false)
		if err != nil {
			return nil, err
		}
		ms := time.Duration.Seconds
		look, kick = append(look, ms(a.Look)*1e3), append(kick, ms(a.Kick)*1e3)
		last, alone = append(last, ms(a.Last)*1e3), append(alone, ms(b.Last)*1e3)
	}
	what := fmt.Sprintf("%d connections: ", count)
	return []Row{
		NewRow(what+"read the state of all", "ms", "", "", look),
		NewRow(what+"read and kick all", "ms", "<= 500", "", kick),
		NewRow(what+"link to last byte acknowledged", "ms", "<= 500", peerMedian(alone), last),
	}, nil
}
