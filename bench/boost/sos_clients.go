package boost

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/bench/sos"
)

var sosClients = SosExperiment{
	About: sos.Result{
		Name: "sos_clients", Title: "One and two connections of a client", Thesis: "table 3.3.4",
		Setting: "`iperf3 -P 1` and `-P 2` to one port of one server, 1.1 ms there and back between the client and its agent, 50 ms between the agents; once at a path of 500 Mbit/s, once at one whose rate is more than the machine carries.",
		Lacks:   "The thesis' single stream gets 12.17 of 25 Gbit/s, the second one the rest: there a stream is bound by its client's side. Here agents, hosts and the path share two processors and these bind both; what is to be seen is that both connections are carried, and that the second one takes nothing from the sum.",
	},
	Lab: sosPath("{ends: [c1, x], delay: 550us, seed: 2}", sosLongPath),
	run: (*sosRun).clients,
}

// sosClientsThesis are the thesis' rates for one and two streams, in Gbit/s.
var sosClientsThesis = []float64{12.17, 17.20}

// sosFast is a path of 50 ms whose rate is beyond the machine's.
const sosFast = "x y rate 10Gbit delay 25ms queue 62500KB"

// clients measures one stream and two, over both paths.
func (r *sosRun) clients(ctx context.Context) error {
	paths := []struct {
		name, is string
		thesis   bool
	}{{"path of 10 Gbit/s", sosFast, true}, {"path of 500 Mbit/s", longPath, false}}
	if r.opt.Quick {
		paths = paths[1:]
	}
	return r.boosted(ctx, func(b *rig) error {
		for _, path := range paths {
			if err := b.link(ctx, path.is); err != nil {
				return err
			}
			if err := b.agents.RestartWith(ctx, ""); err != nil { // what they know of the path is another one's
				return err
			}
			all := []*contender{b.streams(1), b.streams(2)}
			if err := b.turns(ctx, path.name, all...); err != nil {
				return err
			}
			for i, c := range all {
				thesis := 0.
				if path.thesis {
					thesis = sosClientsThesis[i]
				}
				r.put(c.name, path.name, "Gbit/s", thesis, each(c.all, gigabits)...)
			}
		}
		return nil
	})
}

// streams is so many connections of one client that agents carry.
func (b *rig) streams(n int) *contender {
	return &contender{name: fmt.Sprintf("-P %d", n), run: func(ctx context.Context) (float64, error) {
		return b.iperf(ctx, "cubic", iperfBoosted, n, settle, b.opt.Each)
	}}
}
