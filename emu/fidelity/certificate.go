// Package fidelity says whether an emulated network did what was asked of it, or was itself the bottleneck: what each
// link delivered beside what its parameters say, and how well the emulator's threads kept up. It judges what was
// counted and measured while packets flowed ([emu.Link.Stats], [emu.Net.Shards]); it sends none.
package fidelity

import (
	"time"

	"scaffold.dev/scaffold/emu"
)

// Bounds are what a faithful run keeps to.
type Bounds struct {
	LateP99 time.Duration `json:"late_p99_ns"` // by how much one in a hundred packets may leave a link too late
	Rate    float64       `json:"rate"`        // by which share a link that is never idle may be slower or faster than its rate
	Turn    time.Duration `json:"turn_p99_ns"` // how long one in a hundred frames may wait at an interface until it is read
}

// Usual are the bounds of a run that asks for no others.
var Usual = Bounds{LateP99: 300 * time.Microsecond, Rate: 0.005, Turn: time.Millisecond}

// A Direction is what was counted of one direction of a link.
type Direction struct {
	From, To string
	Stats    emu.LineStats
	Dropped  uint64 // frames that the interface where it begins lost because nobody read them in time
}

// A Certificate is the result.
type Certificate struct {
	Faithful bool             `json:"faithful"`
	Reasons  []string         `json:"reasons,omitempty"` // why not
	Bounds   Bounds           `json:"bounds"`
	Links    []Row            `json:"links"`
	Shards   []emu.ShardStats `json:"shards"`
}

// A Row sums up one direction of a link, since its parameters were last set.
type Row struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Asked   string  `json:"asked"` // parameters, as in a lab file
	Seconds float64 `json:"seconds"`
	Packets uint64  `json:"packets"`

	RateAsked uint64        `json:"rate_asked"` // bit/s, 0 for no limit
	Rate      emu.RateStats `json:"rate"`       // measured while there was always something to send

	DelayAsked time.Duration `json:"delay_asked_ns"`
	Late       emu.LateStats `json:"late"` // beyond the delay that was asked for and drawn

	LossAsked float64 `json:"loss_asked"` // shares of the packets that found room in the queue
	Loss      float64 `json:"loss"`
	Overflow  uint64  `json:"overflow"` // packets that found the queue full, as asked for
	Missing   uint64  `json:"missing"`  // packets that the emulator itself lost
}

// Judge makes a certificate of what was measured.
func Judge(all []Direction, shards []emu.ShardStats, b Bounds) Certificate {
	c := Certificate{Bounds: b, Shards: shards}
	for _, d := range all {
		row := newRow(d)
		c.Links = append(c.Links, row)
		c.Reasons = append(c.Reasons, row.faults(d, b)...)
	}
	for i, s := range shards {
		c.Reasons = append(c.Reasons, overrun(i, s, b)...)
	}
	c.Faithful = len(c.Reasons) == 0
	return c
}

func newRow(d Direction) Row {
	s := d.Stats
	row := Row{
		From: d.From, To: d.To, Asked: s.Params.String(), Seconds: s.SetFor.Seconds(), Packets: s.Counters.Packets - s.Before.Packets,
		RateAsked: s.Params.Rate, Rate: s.Rate, DelayAsked: s.Params.Delay, Late: s.Late,
		LossAsked: lossOf(s.Params), Overflow: s.Counters.Overflow - s.Before.Overflow, Missing: s.Starved + d.Dropped,
	}
	if row.Packets > row.Overflow {
		lost := s.Counters.Lost + s.Counters.LostBurst - s.Before.Lost - s.Before.LostBurst
		row.Loss = float64(lost) / float64(row.Packets-row.Overflow)
	}
	return row
}

// lossOf is the share that is lost for either reason.
func lossOf(p emu.Params) float64 { return 1 - (1-p.Loss)*(1-p.BurstLoss) }
