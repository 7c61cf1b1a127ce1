package emu

import "errors"

// A Measure is what was counted of one direction of a link, with how late each packet was.
type Measure struct {
	LineStats
	Lateness Lateness
}

// Measure returns what was counted of both directions, the one from Ends[0] first, since their parameters were set.
// With anew, counting begins again; what packets meet does not change.
func (l *Link) Measure(anew bool) (all [2]Measure, err error) {
	var errs [2]error
	for i, w := range l.ways {
		m := &all[i]
		errs[i] = errors.Join(w.near.ask(func() {
			w.nearStats(&m.LineStats)
			if anew {
				w.nearAnew()
			}
		}), w.far.ask(func() {
			w.farStats(&m.LineStats)
			m.Lateness = w.late
			if anew {
				w.farAnew()
				w.rate.forget()
			}
		}))
	}
	return all, errors.Join(errs[:]...)
}

// MeasureShards returns the states of all shards, and with anew has counting begin again.
func (n *Net) MeasureShards(anew bool) ([]ShardStats, error) { return n.shardStats(anew) }

// nearAnew begins to count at the side that sends.
func (w *way) nearAnew() {
	w.since, w.before, w.starve0 = w.net.at(w.near), w.line.Counters(), w.starved
}

// farAnew begins to count at the side that receives.
func (w *way) farAnew() { w.late, w.miss0 = Lateness{}, w.missed }
