package tune

import (
	"math"
	"slices"
	"time"
)

// A Cause is what of a path binds, where the path is what does.
type Cause uint8

// Causes.
const (
	NoCause       Cause = iota // not seen for long enough, or nothing that can be told
	LinkFull                   // what this agent sends fills the path
	OthersTraffic              // others keep its queue up
	ChanceLoss                 // CUBIC takes what is lost by chance for a full path
	AtLimit                    // an operator's limit
	SendBuffer                 // the kernel's buffers of connections at this agent
	ReceiveBuffer              // those at the other one
	FlowLimit                  // something on the way that limits each connection by itself
	causes
)

// causeNames are as messages have them.
var causeNames = [causes]string{"", "full", "others", "loss", "limit", "send buffer", "receive buffer", "flow limit"}

func (c Cause) String() string {
	if c >= causes {
		return causeNames[NoCause]
	}
	return causeNames[c]
}

// CauseNamed is the cause of that name; NoCause where it is none.
func CauseNamed(name string) Cause {
	if i := slices.Index(causeNames[:], name); i > 0 {
		return Cause(i)
	}
	return NoCause
}

// A Verdict is what of a path binds, and by how much.
type Verdict struct {
	Cause Cause
	Rate  float64 // bytes a second of ours that arrive
	Loss  float64 // part of what is sent that is lost although the queue is short
	Held  float64 // part of the time in which connections had bytes to send that buffers held them up; of SendBuffer and ReceiveBuffer
	Flows int     // connections that are to carry it, where others do not say how many
}

const (
	// leastLoss is as little of what is sent as is called loss.
	leastLoss = 1e-5
	// permits is by how much more than what is carried loss may permit, by what is known of CUBIC on the average, and still be
	// what holds it down.
	permits = 2
	// holdUp is for which part of the time buffers hold connections up that bind them. BBR paces by what it has seen arrive, and
	// asks for one eighth of the time whether there is more: held up then, it never finds out.
	holdUp, holdUpBBR = 0.5, 0.1
	// smooths is of how many intervals numbers are told.
	smooths = 8
)

// An average is that of the last values, about.
type average struct {
	of   float64
	seen int
}

func (a *average) add(x float64) {
	a.seen = min(a.seen+1, smooths)
	a.of += (x - a.of) / float64(a.seen)
}

// A causality looks for what of a path binds. The zero value has seen nothing.
type causality struct {
	under  Decision // that an interval passes under
	last   [alike]Cause
	quiet  int       // intervals, one after the other, in which the path did not bind
	plain  int       // in which it did, with a short queue, and nothing of what is known here explains that
	full   float64   // what it carried when its queue was long, bytes a second
	filled time.Time // when that was
	found  Cause

	rate, loss, held average
}

// see takes an interval, behind which d was decided. alien says that its queue does not heed what we send, more is what more
// connections brought.
func (c *causality) see(m *Measure, d Decision, s *Settings, alien bool, more brought) {
	copy(c.last[1:], c.last[:])
	plain := c.plain
	c.plain = 0
	if c.last[0] = c.of(m, d, s, alien, more); c.last[0] == unexplained {
		c.last[0], c.plain = NoCause, plain+1
		if more == asMuch {
			c.last[0] = FlowLimit
		}
	}
	c.under = d
	if !slices.ContainsFunc(c.last[:], func(x Cause) bool { return x != c.last[0] }) {
		c.found = c.last[0] // else what was found before holds until something else is as sure
	}
}

// unexplained is what bound in an interval where that was none of the others: more connections may tell, with BBR. Of CUBIC, which
// looks then as it does where loss is by chance, losesByChance tells.
const unexplained = causes

// unexplained reports whether that has been so for as long as it takes to tell a cause.
func (c *causality) unexplained() bool { return c.plain >= alike }

// of is what of the path bound in one interval.
func (c *causality) of(m *Measure, d Decision, s *Settings, alien bool, more brought) Cause {
	if !m.Bound || m.Rate <= 0 || m.MinRTT <= 0 {
		if c.quiet++; c.quiet >= idle {
			c.full, c.rate, c.loss, c.held = 0, average{}, average{}, average{}
		}
		return NoCause
	}
	c.quiet = 0
	carries := m.Rate / (1 - min(m.loss(), mostChance))
	long := m.queue() >= m.target()
	c.rate.add(m.Rate)
	if !long { // else what is lost may have found it full
		c.loss.add(min(m.loss(), mostChance))
	}
	c.held.add(max(m.held(m.SendBuffer), m.held(m.ReceiveBuffer)))
	if c.full > 0 { // the interval of the queue may have had a time before it, or behind it
		c.full = max(c.full, carries)
	}
	if long && !d.Beside {
		c.full, c.filled = max(carries, c.full+(carries-c.full)/4), m.Now
	}
	most := holdUp
	if c.under.Control == "bbr" {
		most = holdUpBBR
	}
	switch {
	case s.Limit > 0 && c.under.Cap == s.Limit && carries >= 0.9*s.Limit:
		return AtLimit
	case d.Beside:
		return OthersTraffic
	case !long && m.held(m.SendBuffer) > most: // where the queue is long a larger buffer would make it longer
		return SendBuffer
	case !long && m.held(m.ReceiveBuffer) > most:
		return ReceiveBuffer
	case alien, s.Share == Raw && m.Now.Sub(c.filled) < lookAgain: // whose the queue is nobody has asked
		return NoCause
	case long, c.fills(m, carries, more):
		return LinkFull
	case c.under.Control == "bbr":
		return unexplained
	case c.losesByChance(m):
		return ChanceLoss
	}
	return NoCause
}

// held is the part of the time in which connections had bytes to send that something held them up.
func (m *Measure) held(by time.Duration) float64 {
	if m.Busy <= 0 {
		return 0
	}
	return min(by.Seconds()/m.Busy.Seconds(), 1)
}

// fills reports whether a path whose queue is short is full: it carries what it did when that was long. A cap may be why it is
// short, and asks for less while it drains one. Where more connections bring more, bursts of some that had just begun were the queue.
func (c *causality) fills(m *Measure, carries float64, more brought) bool {
	switch {
	case c.full == 0:
		return false
	case c.under.Cap > 0:
		return carries >= 0.9*min(c.full, c.under.Cap)
	case more == asMuch:
		return false
	}
	return (more == nothing || m.Now.Sub(c.filled) < lookAgain) && carries >= 0.95*c.full
}

// losesByChance reports whether loss explains what each connection carries. CUBIC's window is 1.054 (RTT/p)^¾ segments of the
// part p lost, in seconds, or, on shorter paths, Reno's √(3/2p) (RFC 9438, sections 5.1 and 4.3): one that is much smaller is
// held down by something else. A queue that is too short to be seen loses as chance does.
func (c *causality) losesByChance(m *Measure) bool {
	p := c.loss.of
	if p < leastLoss {
		return false
	}
	window := m.Rate * m.RTT.Seconds() / float64(max(m.Flows, 1)) / 1448
	cubic, reno := 1.054*math.Pow(m.RTT.Seconds()/p, 0.75), math.Sqrt(1.5/p)
	return max(cubic, reno) <= permits*window
}
