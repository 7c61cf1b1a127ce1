package emu

import "errors"

// LineStats are the present state of one direction of a link.
type LineStats struct {
	Params   Params    `json:"params"`
	Counters Counters  `json:"counters"`
	Cut      uint64    `json:"cut"`      // packets that met the direction down
	Refused  uint64    `json:"refused"`  // parts that the far interface did not take: it is down
	Starved  uint64    `json:"starved"`  // frames for which the engine had no memory
	Late     LateStats `json:"late"`     // since the parameters were set
	Realtime bool      `json:"realtime"` // the kernel runs the engine before ordinary programs
	Busy     float64   `json:"busy"`     // share of the time that the engine's thread works
}

// Stats are the present state of both directions, the one from Ends[0] first.
func (l *Link) Stats() (all [2]LineStats, err error) {
	var errs [2]error
	for i, w := range l.ways {
		errs[i] = w.near.ask(func() { all[i] = w.stats() })
	}
	return all, errors.Join(errs[:]...)
}

func (w *way) stats() LineStats {
	all := LineStats{
		Params: w.line.Params(), Counters: w.line.Counters(), Cut: w.lost, Refused: w.refused, Starved: w.starved, Late: w.late.stats(),
	}
	if w.near != nil {
		all.Realtime, all.Busy = w.near.pace.realtime, w.near.pace.busy
	}
	return all
}
