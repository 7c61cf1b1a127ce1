package emu

import (
	"errors"
	"time"
)

// LineStats are the present state of one direction of a link.
type LineStats struct {
	Params   Params    `json:"params"`
	Counters Counters  `json:"counters"`
	Cut      uint64    `json:"cut"`      // packets that met the direction down
	Refused  uint64    `json:"refused"`  // parts that the far interface did not take: it is down
	Starved  uint64    `json:"starved"`  // frames for which the engine had no memory
	Missing  uint64    `json:"missing"`  // of those: since counting began
	Late     LateStats `json:"late"`     // since counting began
	Rate     RateStats `json:"rate"`     // at which packets left while the line was never idle, since counting began
	Realtime bool      `json:"realtime"` // the kernel runs the engine before ordinary programs
	Busy     float64   `json:"busy"`     // share of the time that the engine's thread works

	SetFor time.Duration `json:"set_for_ns"` // since counting began: the parameters were set, or [Link.Measure] was to begin anew
	Before Counters      `json:"before"`     // the counters then
}

// ShardStats are the present state of a shard: how well its thread keeps up.
type ShardStats struct {
	Routers  int       `json:"routers"`
	Edges    int       `json:"edges"`
	Realtime bool      `json:"realtime"` // the kernel runs the thread before ordinary programs
	Busy     float64   `json:"busy"`     // share of the last 20 ms that it worked
	Worked   float64   `json:"worked"`   // share of the time since counting began
	Turns    LateStats `json:"turns"`    // how long it did not look at interfaces, since counting began
	Pauses   uint64    `json:"pauses"`   // turns since then in which it had used up its share of the processor and stood still
}

// Shards are the present states of all shards.
func (n *Net) Shards() ([]ShardStats, error) { return n.shardStats(false) }

func (n *Net) shardStats(anew bool) ([]ShardStats, error) {
	all := make([]ShardStats, len(n.shards))
	for i, s := range n.shards {
		if err := s.ask(func() {
			all[i] = ShardStats{len(s.routers), len(s.edges), s.pace.realtime, s.pace.busy, s.pace.worked(), s.turns.Stats(), s.pauses}
			if anew {
				s.turns, s.pauses, s.pace.working, s.pace.counted = Lateness{}, 0, 0, 0
			}
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// at is the present time of a shard, which has none before the start.
func (n *Net) at(s *shard) time.Duration {
	if s == nil {
		return 0
	}
	return s.now
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
	s.SetFor, s.Before, s.Missing = w.net.at(w.near)-w.since, w.before, w.starved-w.starve0
}

func (w *way) farStats(s *LineStats) {
	s.Refused, s.Late, s.Rate = w.refused, w.late.Stats(), w.rate.stats
	s.Starved += w.missed
	s.Missing += w.missed - w.miss0
	if w.far != nil {
		s.Realtime, s.Busy = w.far.pace.realtime, w.far.pace.busy
	}
}

// Held is how many frames lie in memory: on links, in queues, or with programs. It is to be called while nothing moves.
func (n *Net) Held() (held int) {
	for _, s := range n.shards {
		held += len(s.arena.refs) - len(s.arena.free[0]) - len(s.arena.free[1])
	}
	return held
}
