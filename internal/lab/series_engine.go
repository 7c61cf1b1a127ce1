package lab

import "context"

// readEngine asks the engine what passed between one of its routers and a neighbour.
func (r *runner) readEngine(ctx context.Context, n *PlanNode, s *Series, res *SeriesResult) error {
	last := growth{}
	return r.tick(ctx, s, func(at float64) error {
		links, err := r.lab.Emulated()
		if err != nil {
			return err
		}
		var bytes uint64
		for _, link := range links.Between(n.Name, s.Received+s.Sent) {
			way := 0
			if (link.Ends[0] == n.Name) != (s.Sent != "") {
				way = 1
			}
			bytes += link.Lines[way].Counters.PassedByte
		}
		if rate, ok := last.per(at, float64(bytes)); ok {
			res.add(at, rate*8/1e6)
		}
		return nil
	})
}
