// Package fidelity says whether an emulated network did what was asked of it, or was itself the bottleneck: what each
// link delivered beside what its parameters say, and how well the emulator's threads kept up. It judges what was
// counted and measured while packets flowed ([emu.Link.Stats], [emu.Net.Shards]); it sends none.
package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scaffold.dev/scaffold/emu"
)

// Bounds are what a faithful run keeps to.
type Bounds struct {
	LateP99 time.Duration `json:"late_p99_ns"` // by how much one in a hundred packets may leave a link too late
	Rate    float64       `json:"rate"`        // by which share a link that is never idle may be slower or faster than its rate
	Turn    time.Duration `json:"turn_p99_ns"` // as LateP99, of a link that begins at an interface: what reaches that has to be read first
}

// Usual are the bounds of a run that asks for no others.
var Usual = Bounds{LateP99: 300 * time.Microsecond, Rate: 0.005, Turn: time.Millisecond}

// late is the bound of a direction.
func (b Bounds) late(d *Direction) time.Duration {
	if d.Entry {
		return b.Turn
	}
	return b.LateP99
}

// A Direction is what was counted of one direction of a link.
type Direction struct {
	From, To string
	emu.Measure
	Since   time.Time // when counting began
	Entry   bool      // it begins at an interface
	Blind   error     // why it is not known when frames reach that; nil where it is
	Dropped uint64    // frames that the interface where it begins lost because nobody read them in time
}

// A Certificate is the result.
type Certificate struct {
	Faithful bool             `json:"faithful"`
	Reasons  []string         `json:"reasons,omitempty"` // why not
	Bounds   Bounds           `json:"bounds"`
	Since    time.Time        `json:"since"` // when counting began; of a link whose parameters changed since, see its row
	Links    []Row            `json:"links"` // those with faults first
	Shards   []emu.ShardStats `json:"shards"`
}

// A Row sums up one direction of a link, since its parameters were last set or counting began anew.
type Row struct {
	From    string    `json:"from"`
	To      string    `json:"to"`
	Faults  []string  `json:"faults,omitempty"` // in which it was not what was asked for
	Asked   string    `json:"asked"`            // parameters, as in a lab file
	Since   time.Time `json:"since"`
	Seconds float64   `json:"seconds"`
	Packets uint64    `json:"packets"`

	RateAsked uint64        `json:"rate_asked"` // bit/s, 0 for no limit
	Rate      emu.RateStats `json:"rate"`       // measured while there was always something to send

	DelayAsked time.Duration `json:"delay_asked_ns"`
	Late       emu.LateStats `json:"late"`     // beyond the delay that was asked for and drawn, from the moment that a packet reached the interface
	TooLate    uint64        `json:"too_late"` // packets beyond the bound
	LateBound  time.Duration `json:"late_bound_ns"`

	LossAsked float64 `json:"loss_asked"` // shares of the packets that found room in the queue
	Loss      float64 `json:"loss"`
	Overflow  uint64  `json:"overflow"` // packets that found the queue full, as asked for
	Missing   uint64  `json:"missing"`  // packets that the emulator itself lost
}

// Name is what people call the direction.
func (r *Row) Name() string { return r.From + "->" + r.To }

// Judge makes a certificate of what was measured since a moment.
func Judge(since time.Time, all []Direction, shards []emu.ShardStats, b Bounds) Certificate {
	c := Certificate{Bounds: b, Since: since, Shards: shards}
	var packets, late uint64
	for i := range all {
		row := newRow(&all[i], b)
		c.Links = append(c.Links, row)
		packets, late = packets+row.Late.Packets, late+row.TooLate
	}
	slices.SortStableFunc(c.Links, func(a, b Row) int { return cmp.Compare(min(len(b.Faults), 1), min(len(a.Faults), 1)) })
	if tooMany(late, packets, once) {
		c.Reasons = append(c.Reasons, fmt.Sprintf("all links: %d of %d packets (%.3g %%) left too late; one in a hundred may", late, packets, 100*share(late, packets)))
	}
	for _, row := range c.Links {
		for _, fault := range row.Faults {
			c.Reasons = append(c.Reasons, row.Name()+": "+fault)
		}
	}
	c.Faithful = len(c.Reasons) == 0
	return c
}

func newRow(d *Direction, b Bounds) Row {
	s := &d.LineStats
	row := Row{
		From: d.From, To: d.To, Asked: s.Params.String(), Since: d.Since, Seconds: s.SetFor.Seconds(), Packets: s.Counters.Packets - s.Before.Packets,
		RateAsked: s.Params.Rate, Rate: s.Rate, DelayAsked: s.Params.Delay,
		Late: d.Lateness.Stats(), LateBound: b.late(d), TooLate: d.Lateness.Beyond(b.late(d)),
		LossAsked: lossOf(s.Params), Overflow: s.Counters.Overflow - s.Before.Overflow, Missing: s.Missing + d.Dropped,
	}
	if row.Packets > row.Overflow {
		lost := s.Counters.Lost + s.Counters.LostBurst - s.Before.Lost - s.Before.LostBurst
		row.Loss = share(lost, row.Packets-row.Overflow)
	}
	row.Faults = row.faults(d, b)
	return row
}

// share is n of all, 0 of none.
func share(n, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}

// lossOf is the share that is lost for either reason.
func lossOf(p emu.Params) float64 { return 1 - (1-p.Loss)*(1-p.BurstLoss) }
