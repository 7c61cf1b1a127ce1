package tune

import (
	"math"
	"time"
)

const (
	settles   = 20 // round trips until a number of connections shows what it brings
	measures  = 30 // round trips for which that is measured
	cycles    = 60 // for which BBR's is: where it finds a policer, what it sends changes for 48 (Linux tcp_bbr.c, bbr_lt_bw_max_rtts)
	worth     = 0.25
	costs     = 0.03
	alone     = 0.75 // of what one carries brings each more: nothing that they share limits them
	apart     = 0.5  // and that is worth another one, once it is known
	firstRest = 10 * time.Second
	lastRest  = 5 * time.Minute
	fewerEach = time.Minute
	spare     = 5    // intervals in which what has just begun may have more room than there are bytes: what a session may send grows with what it sent
	changed   = 0.25 // of the round trip or of what is lost: what was tried before says nothing any more
)

// factors are by how much more connections are tried, one after the other until one is worth it.
var factors = []float64{2, 1.5, 1.25}

// Terms are when more connections are tried, and what they have to bring.
type terms struct {
	least, most int
	bbr         bool // what is lost does not limit it
	capped      bool // no more are tried
	factors     []float64
	worth       float64 // of what each carries
	measures    int     // round trips for which a number is measured
}

// A count looks for the number of connections. Each of a congestion control that halves at a loss brings more where loss is
// by chance, until the link is full; beyond that each takes from the others, and from others' traffic. One of BBR fills a link;
// more bring more where something on the way limits each by itself.
type count struct {
	now  int     // that is held
	rate float64 // that it brought, bytes a second

	try     int // that is tried; 0: none
	factor  int // the next of the factors
	until   time.Time
	settled bool
	bytes   float64
	since   time.Time

	unbound   int           // intervals, one after the other, in which the path did not bind
	rest      time.Duration // until more are tried again
	more      time.Time     // when
	fewer     time.Time     // when fewer are tried
	rtt       time.Duration // at the last failure
	loss      float64
	last      time.Time
	downwards bool // fewer are tried
	brought   brought
}

// Brought is what was measured last with two numbers says of what limits the connections.
type brought uint8

const (
	unclear brought = iota
	asMuch          // it limits each by itself
	nothing         // it limits all together
)

func (c *count) trying() bool { return c.try > 0 }

// step takes an interval and returns how many there are to be. Nothing is tried while the path does not bind, or while a cap
// keeps the queue short: then the link is full.
func (c *count) step(m *Measure, t terms) int {
	passed := m.Now.Sub(c.last)
	c.last = m.Now
	if c.unbound++; m.Bound {
		c.unbound = 0
	}
	if passed <= 0 || passed > fewerEach || c.unbound > 0 && (c.try <= c.now || c.unbound > spare) {
		c.stop()
		return c.now
	}
	if c.until.IsZero() {
		c.begin(m, 0)
		if c.fewer.IsZero() {
			c.fewer = m.Now.Add(fewerEach)
		}
		return c.held()
	}
	if c.settled {
		c.bytes += m.Rate * passed.Seconds()
	}
	if m.Now.Before(c.until) {
		return c.held()
	}
	if !c.settled {
		c.settled, c.bytes, c.since = true, 0, m.Now
		c.until = m.Now.Add(time.Duration(t.measures) * m.RTT)
		return c.held()
	}
	c.decide(m, c.bytes/m.Now.Sub(c.since).Seconds(), t)
	return c.held()
}

// held is how many there are just now.
func (c *count) held() int {
	if c.try > 0 {
		return c.try
	}
	return c.now
}

// stop forgets what is tried.
func (c *count) stop() {
	c.try, c.factor, c.until, c.settled, c.downwards = 0, 0, time.Time{}, false, false
}

// begin begins to measure a number; 0: that which is held.
func (c *count) begin(m *Measure, n int) {
	c.try, c.settled = n, false
	c.until = m.Now.Add(settles * m.RTT)
}

// decide has measured a number.
func (c *count) decide(m *Measure, rate float64, t terms) {
	c.compare(rate, t)
	switch {
	case c.try == 0 && rate <= 0: // the path was cut: any number would be better than this one
		c.begin(m, 0)
		return
	case c.try == 0:
		c.rate = rate
	case c.downwards:
		if rate >= (1-costs)*c.rate {
			c.now, c.rate = c.try, rate
		}
		c.stop()
		c.fewer = m.Now.Add(fewerEach)
		return
	case brings(c.now, c.rate, c.try, rate) >= t.worth:
		c.now, c.rate, c.rest, c.more = c.try, rate, 0, time.Time{}
		c.stop()
		return
	default:
		c.factor++
	}
	c.next(m, t)
}

// compare finds by what was measured with two numbers whether what limits the connections limits each by itself. Of many more, which
// may have found the link full, a few more may say something else.
func (c *count) compare(rate float64, t terms) {
	if c.try == 0 {
		return
	}
	more := brings(c.now, c.rate, c.try, rate)
	if c.downwards {
		more = brings(c.try, rate, c.now, c.rate)
	}
	switch {
	case more >= alone:
		c.brought = asMuch
	case more < 1-alone && (c.downwards || c.factor == len(t.factors)-1):
		c.brought = nothing
	}
}

// brings is what each connection more brings, as a part of what each of the fewer carries.
func brings(fewer int, rate float64, more int, then float64) float64 {
	return (then - rate) / float64(more-fewer) / (rate / float64(fewer))
}

// next begins the next try, if there is one.
func (c *count) next(m *Measure, t terms) {
	if c.try == 0 {
		switch {
		case c.now > t.least && !m.Now.Before(c.fewer):
			c.downwards = true
			c.begin(m, max(c.now/2, t.least))
			return
		case t.capped:
			c.begin(m, 0) // go on to measure what is held
			return
		case m.Now.Before(c.more):
			if c.otherwise(m, t) { // what is held brings something else, too: more are tried once that is measured
				c.more, c.rtt, c.loss = m.Now, m.MinRTT, m.loss()
			}
			c.begin(m, 0)
			return
		}
		c.factor = 0
	}
	for ; c.factor < len(t.factors); c.factor++ {
		n := int(math.Ceil(t.factors[c.factor] * float64(c.now)))
		if n > c.now && n <= t.most && n != c.try {
			c.begin(m, n)
			return
		}
	}
	c.rest = min(max(2*c.rest, firstRest), lastRest)
	c.more, c.rtt, c.loss = m.Now.Add(c.rest), m.MinRTT, m.loss()
	c.stop()
}

// otherwise reports whether the path is another one than when more connections were not worth it.
func (c *count) otherwise(m *Measure, t terms) bool {
	far := func(a, b float64) bool { return math.Abs(a-b) > changed*max(a, b) }
	return far(float64(c.rtt), float64(m.MinRTT)) || !t.bbr && far(c.loss, m.loss()) && max(c.loss, m.loss()) > 1e-4
}
