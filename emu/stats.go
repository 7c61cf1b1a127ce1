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
		errs[i] = errors.Join(w.near.ask(func() { w.nearStats(&all[i]) }), w.far.ask(func() { w.farStats(&all[i]) }))
	}
	return all, errors.Join(errs[:]...)
}

func (w *way) nearStats(s *LineStats) {
	s.Params, s.Counters, s.Cut, s.Starved = w.line.Params(), w.line.Counters(), w.lost.Load(), w.starved
}

func (w *way) farStats(s *LineStats) {
	s.Refused, s.Late = w.refused, w.late.stats()
	s.Starved += w.missed
	if w.far != nil {
		s.Realtime, s.Busy = w.far.pace.realtime, w.far.pace.busy
	}
}
