package emu

import (
	"fmt"
	"math"
	"time"
)

// Params describe one direction of a link. The zero value delivers everything at once.
type Params struct {
	Rate  uint64 `json:"rate,omitempty"`  // bit/s of Ethernet frames without checksum; 0 is no limit
	Queue uint64 `json:"queue,omitempty"` // bytes that may wait for the rate; 0 is DefaultQueue

	Delay     time.Duration `json:"delay,omitempty"`
	Jitter    time.Duration `json:"jitter,omitempty"`    // delays are uniform in Delay ± Jitter
	Unordered bool          `json:"unordered,omitempty"` // jitter may change the order of packets

	Loss      float64 `json:"loss,omitempty"`       // share of packets, each independent of the others
	BurstLoss float64 `json:"burst_loss,omitempty"` // share of packets lost in bursts (Gilbert and Elliott)
	Burst     float64 `json:"burst,omitempty"`      // mean length of a burst in packets; 0 is DefaultBurst

	Duplicate float64       `json:"duplicate,omitempty"`  // share of packets that arrive twice
	Reorder   float64       `json:"reorder,omitempty"`    // share of packets that are held back
	ReorderBy time.Duration `json:"reorder_by,omitempty"` // for how long; 0 is DefaultReorderBy

	Seed uint64 `json:"seed,omitempty"` // of all that is drawn
}

// What the zero values of parameters mean.
const (
	DefaultBurst     = 8
	DefaultReorderBy = time.Millisecond
)

// Limits of parameters.
const (
	MinRate  = 8_000           // bit/s
	MaxRate  = 100_000_000_000 // bit/s
	MaxDelay = time.Minute
	MaxQueue = 1 << 30 // bytes
	maxBurst = 1e6     // packets
	queueMS  = 50      // milliseconds of the rate, the default queue
	minQueue = 1 << 16 // bytes: one train of segments
)

// DefaultQueue is the queue of a rate where none is given: 50 ms of it, and at least one train of
// segments, which enters all at once.
func DefaultQueue(rate uint64) uint64 { return max(minQueue, rate/8*queueMS/1000) }

// Validate says which value is impossible, and what is expected.
func (p Params) Validate() error {
	switch {
	case p.Rate != 0 && (p.Rate < MinRate || p.Rate > MaxRate):
		return fmt.Errorf("rate %d bit/s: expected 8kbit to 100Gbit", p.Rate)
	case p.Queue > MaxQueue:
		return fmt.Errorf("queue %d bytes: expected at most 1GB", p.Queue)
	case p.Queue != 0 && p.Rate == 0:
		return fmt.Errorf("queue %d bytes without a rate: nothing would ever wait; give a rate", p.Queue)
	case p.Delay < 0 || p.Delay > MaxDelay:
		return fmt.Errorf("delay %v: expected 0s to %v", p.Delay, MaxDelay)
	case p.Jitter < 0 || p.Jitter > p.Delay:
		return fmt.Errorf("jitter %v: expected at most the delay, %v: delays are uniform in delay ± jitter", p.Jitter, p.Delay)
	case p.ReorderBy < 0 || p.ReorderBy > MaxDelay:
		return fmt.Errorf("reorder-by %v: expected 0s to %v", p.ReorderBy, MaxDelay)
	case p.Burst != 0 && !(p.Burst >= 1 && p.Burst <= maxBurst):
		return fmt.Errorf("burst %g: expected a mean length from 1 to %g packets", p.Burst, float64(maxBurst))
	case p.BurstLoss == 1:
		return fmt.Errorf("burst-loss 100%%: nothing would pass; expected less")
	}
	for _, s := range []struct {
		name  string
		value float64
	}{{"loss", p.Loss}, {"burst-loss", p.BurstLoss}, {"duplicate", p.Duplicate}, {"reorder", p.Reorder}} {
		if !(s.value >= 0 && s.value <= 1) {
			return fmt.Errorf("%s %g: expected 0%% to 100%%", s.name, s.value*100)
		}
	}
	if e := p.enter(); e > 1 {
		return fmt.Errorf("burst-loss %g%% in bursts of %g packets: bursts would touch; make them longer, at least %.3g",
			p.BurstLoss*100, p.burst(), p.BurstLoss/(1-p.BurstLoss))
	}
	return nil
}

func (p Params) queue() uint64 {
	if p.Queue == 0 {
		return DefaultQueue(p.Rate)
	}
	return p.Queue
}

func (p Params) burst() float64 {
	if p.Burst == 0 {
		return DefaultBurst
	}
	return p.Burst
}

func (p Params) reorderBy() time.Duration {
	if p.ReorderBy == 0 {
		return DefaultReorderBy
	}
	return p.ReorderBy
}

// enter is the probability that a burst begins with the next packet. In the model of Gilbert and
// Elliott the share of time in the bad state is enter / (enter + leave), and 1/leave its mean length.
func (p Params) enter() float64 {
	if p.BurstLoss <= 0 || p.BurstLoss >= 1 || math.IsNaN(p.BurstLoss) {
		return 0
	}
	return p.BurstLoss / (1 - p.BurstLoss) / p.burst()
}
