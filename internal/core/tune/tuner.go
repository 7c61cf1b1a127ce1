package tune

import (
	"time"
)

// A Share is how a path is shared with the traffic of others.
type Share uint8

// Shares.
const (
	Fair  Share = iota // yields its part of a queue; where others keep one up it is as many flows as it carries sessions
	Full               // yields its part of a queue, and takes what it gets beside others
	Yield              // leaves the path to others who keep a queue up
	Raw                // sends as the congestion control does by itself
)

// Shares are their names, in the order of the constants.
var Shares = []string{"fair", "full", "yield", "raw"}

// Settings are what an operator wants of a path.
type Settings struct {
	Share  Share
	Weight float64 // flows for each session beside others, in Fair; 0: 1
	Limit  float64 // bytes a second; 0: none
	BBR    bool    // the kernel has it, and lets this process choose it
	First  int     // connections to begin with; 0: one
	Most   int     // that there may be; no more than First: their number stays
	Open   int     // with BBR that there may be where something on the way limits each by itself; no more than Most: no others
}

// Seeks reports whether the number of connections is to be found.
func (s *Settings) Seeks() bool { return max(s.Most, s.Open) > max(s.First, 1) }

// A Measure is what was seen of a path in one interval, over all its connections.
type Measure struct {
	Now         time.Time
	Length      time.Duration // of the interval
	RTT, MinRTT time.Duration // as the kernel smooths it, and the shortest that it has seen
	Rate        float64       // bytes a second that were acknowledged
	Sent        uint64        // bytes, with those that went out again
	Resent      uint64
	Flows       int  // connections that carried it
	Bound       bool // the path is what binds: bytes waited for it most of the time
	Sessions    int  // that have bytes to send
	// Busy is for how long connections had bytes that were not acknowledged, all added up; SendBuffer and ReceiveBuffer are for
	// how long of that the kernel's buffers held them up, here and at the other agent (tcp_info).
	Busy, SendBuffer, ReceiveBuffer time.Duration
}

// queue is how long packets wait on the path.
func (m *Measure) queue() time.Duration { return max(m.RTT-m.MinRTT, 0) }

// target is how long they may.
func (m *Measure) target() time.Duration { return max(5*time.Millisecond, m.MinRTT/10) }

// least is what no cap is below: what that many connections that have just begun send, ten segments of 1,448 bytes in a round
// trip. What was measured in an interval may be next to nothing, by a pause of whoever sends, or of this machine.
func (m *Measure) least() float64 {
	return float64(max(m.Flows, 1)) * 10 * 1448 / max(m.MinRTT, 100*time.Microsecond).Seconds()
}

func (m *Measure) loss() float64 {
	if m.Sent == 0 {
		return 0
	}
	return float64(m.Resent) / float64(m.Sent)
}

// A Decision is how a path is to be used from now on.
type Decision struct {
	Control     string // congestion control, as the kernel names it
	Connections int
	Cap         float64 // bytes a second over all connections that carry; 0: as they will
	Beside      bool    // others keep a queue up: no more than Connections carry
	Why         Reason
}

// A Reason says why a decision is as it is.
type Reason uint8

// Reasons.
const (
	Begins  Reason = iota // nothing was measured yet
	Idle                  // the path does not bind
	Drains                // the queue is longer than its target
	Grows                 // the queue is short
	Holds                 // the queue is as long as it should be
	Tries                 // another number of connections is measured
	Beside                // others keep the queue up
	Limited               // an operator's limit
	reasons
)

var reasonNames = [reasons]string{"begins", "idle", "drains", "grows", "holds", "tries", "beside others", "limited"}

func (r Reason) String() string {
	if r >= reasons {
		return "unknown"
	}
	return reasonNames[r]
}

const (
	// others is how many drains, one after the other, take less than half of what they would of a queue that is ours, until
	// others are who keep it up: one may be of a moment at which the link became slower. lookAgain is how long that holds.
	others    = 2
	lookAgain = 10 * time.Second
	// back is for how many intervals BBR may send no more than its part before CUBIC follows: sixteen round trips, and BBR
	// forgets after ten what it saw. assumed is how many flows of others that part is beside; nobody can count them.
	back    = 2
	assumed = 8
	// fallen is what is left of what we had once others have shown by that who they are.
	fallen = 0.85
	// lags is how much of what is asked for, by what is sent of a cap, a link carries at least that is as fast as it was. In the
	// model a link that stands still for 10 to 60 ms about once in a second is taken for shared in 3 of 40 times 30 s with 0.93,
	// in 5 with 0.9; with more, others are found later than they should be.
	lags = 0.93
	// deepest is what is left at least of a cap while a queue drains.
	deepest = 0.5
	// down and up are what a cap changes by at most in an interval: what one has measured may be of a pause of whoever sends,
	// or of this machine. fast is the same once the queue has been empty for several: others have gone, or the link is another
	// one.
	down, up, fast = 0.9, 1.03, 1.25
	several        = 5
	// mostChance is as much of that as is believed: beyond, a cap by it would be none.
	mostChance = 0.1
	// idle is how many intervals a path does not bind until what was known of it is forgotten: who comes then is not held to
	// what was left for others' traffic before.
	idle = 6
	// below is how much less than what the path carries is asked of it once its queue was long.
	below = 0.99
	// leastUse is as little of a cap as is believed to be sent. BBR sends 0.75 of its rate in one of eight phases, and 0.99 at
	// most in the others: 0.96 of what it may. A cap of what a path carries would be filled to that, and grow by up to where it was.
	leastUse = 0.93
	// free is how far above what is carried a cap is none any more.
	free = 1.5
)

// A Tuner decides for one path. It belongs to one goroutine.
type Tuner struct {
	Settings
	path   path
	cap    float64
	asked  float64   // the cap of this interval, which may be a drain's
	chance float64   // part of what is sent that is lost although the queue is short
	use    float64   // part of a cap that is sent
	drain  drain     // what is just now taken of the queue
	stays  int       // drains, one after the other, that took less
	held   int       // intervals in which the queue was no longer than it may be, and no shorter than its target
	alien  int       // drains of such a queue, one after the other, that it did not heed
	first  int       // intervals in which the queue was long before there was a cap
	empty  int       // in which it was nearly empty, one after the other
	quiet  int       // in which the path did not bind
	took   float64   // what it carried of ours before it was drained, bytes a second
	slower bool      // the link has become slower by then
	beside time.Time // until then others have a part of it; zero: they do not
	again  bool      // it is looked again whether they have
	falls  int       // drains of such a look, one after the other, that took what they would of a queue that is ours
	since  int       // intervals that others have had a part
	got    float64   // what ours was at the last look, bytes a second
	left   time.Time // when that was
	part   float64   // what ours may be, bytes a second; 0: what CUBIC gets
	pulse  int       // intervals for which it is more, to see whether the round trip heeds it when it is less again
	count  count
	why    causality
}

// A drain is one interval or more in which less is asked for than the path carries, so that the queue becomes shorter; the zero
// value is none.
type drain struct {
	cap   float64       // while it lasts, bytes a second
	rate  float64       // that the path carried before it
	queue time.Duration // before it
	over  time.Duration // what is longer behind it has stayed
	began time.Time
	more  int // intervals that it takes beyond the first
}

// drained is a drain to a goal. What shows of it at its end is the queue of a round trip before, which may be many intervals
// where the queue is deep: it takes twice that, so that there is something to see.
func (m *Measure) drained(carries, most float64, goal, over time.Duration) drain {
	intervals := max((2*m.RTT+m.Length-1)/max(m.Length, 1), 1)
	part := min(float64(m.queue()-goal)/float64(intervals*m.Length), 1-deepest)
	return drain{max(min(carries, most)*(1-part), m.least()), carries, m.queue(), over, m.Now, int(intervals) - 1}
}

// NewTuner begins with what the settings say.
func NewTuner(s Settings) *Tuner {
	if s.Weight <= 0 {
		s.Weight = 1
	}
	s.First = max(s.First, 1)
	s.Most = max(s.Most, s.First)
	if s.Open = max(s.Open, s.Most); !s.BBR {
		s.Open = s.Most
	}
	return &Tuner{Settings: s, use: 1, count: count{now: s.First}}
}

// Step takes what was measured in an interval.
func (p *Tuner) Step(m Measure) (d Decision) {
	defer func() { p.why.see(&m, d, &p.Settings, max(p.stays, p.alien) > 0, p.count.brought) }()
	d = Decision{Control: "cubic", Connections: p.count.now, Why: Idle}
	if p.BBR {
		d.Control = "bbr"
	}
	if p.Share == Raw && m.MinRTT > 0 {
		p.seek(&d, &m)
	}
	if p.Share == Raw || m.MinRTT <= 0 {
		return p.limited(d)
	}
	m.MinRTT = p.path.length(&m)
	if !p.beside.IsZero() {
		p.look(&m)
	}
	if !p.beside.IsZero() {
		return p.besideOthers(d, &m)
	}
	if m.Bound && m.Rate > 0 {
		p.quiet = 0
		d.Why = p.shape(&m)
		switch {
		case max(p.stays, p.alien) < others:
		case p.path.proved(m.Now): // the longer path carries what the shorter one did
			p.chance = p.path.lost(p.chance)
			p.stays, p.alien, p.drain, p.cap = 0, 0, drain{}, max(p.cap, below*p.took)
		case p.stays >= others && !p.path.stands():
			p.yield(&m)
			return p.besideOthers(d, &m)
		}
	} else {
		p.stays, p.alien, p.held, p.empty, p.first, p.path.run, p.drain = 0, 0, 0, 0, 0, 0, drain{}
		if p.quiet++; p.quiet >= idle {
			p.cap, p.took, p.again, p.path.best = 0, 0, false, 0
		}
	}
	if p.again {
		p.asBeside(&d, &m)
	}
	if d.Cap = p.cap; p.drain.cap > 0 {
		d.Cap = p.drain.cap
	}
	p.asked = d.Cap
	if !p.again {
		p.seek(&d, &m)
	}
	return p.limited(d)
}

// look asks, while others have their part, whether there are any: at the end of that time, or as soon as it shows that what was
// taken for their queue is length. It goes on by what it has, and not by all that BBR would take.
func (p *Tuner) look(m *Measure) {
	if m.Bound && m.Rate > 0 {
		p.path.follow(m, p.Share != Full, p.asked, p.chance) // Full goes on to send all that it can, and has a queue of its own
	} else {
		p.path.run = 0
	}
	switch over := !m.Now.Before(p.beside); {
	case p.path.weak && p.path.proved(m.Now):
		p.alone(m)
	case p.pulse == 1 && !p.BBR && p.path.heedless():
		p.path.take(m.Now)
		p.alone(m)
	case over && p.Share != Full && (p.BBR || p.Seeks()) && p.path.asks(m):
		if p.beside, p.pulse = m.Now.Add(lookAgain), back; !p.BBR {
			p.pulse = still + 1
		}
	case over:
		p.got, p.left = m.Rate, m.Now
		p.path.run, p.asked = 0, 0
		if p.beside, p.again, p.falls = (time.Time{}), true, 0; m.Bound {
			p.cap = max(m.Rate, m.least())
		}
	}
}

// alone ends a time in which others had their part: what was taken for their queue is length, and what was lost in it is chance.
func (p *Tuner) alone(m *Measure) {
	p.chance = p.path.lost(p.chance)
	p.beside, p.pulse, p.asked, p.cap = time.Time{}, 0, 0, max(m.Rate, m.least())
	m.MinRTT = p.path.longer
}

// seek looks for the number of connections, where that is not an operator's.
func (p *Tuner) seek(d *Decision, m *Measure) {
	if !p.Seeks() {
		return
	}
	if n := p.count.step(m, p.terms()); n != d.Connections || p.count.trying() {
		d.Connections, d.Why = n, Tries
	}
}

// terms are when more connections are tried. More of BBR than there are bring something only where each is limited by itself (a
// policer, one of several links), and take from others' BBR where the queue is too short to be seen: they are tried while
// nothing else is known to bind, and kept where each brings about as much as one does.
func (p *Tuner) terms() terms {
	t := terms{least: 1, most: p.Most, capped: p.cap > 0, factors: factors, worth: worth, measures: measures}
	if !p.BBR || p.Open == p.Most {
		return t
	}
	t.least, t.most, t.bbr, t.measures = p.First, p.Open, true, cycles
	t.capped = t.capped || !p.why.unexplained()
	if t.worth = apart; p.count.brought != asMuch {
		t.worth, t.factors = alone, factors[:1]
	}
	return t
}

// Skip takes the place of Step for intervals of which nothing is known, as many as that, and the decision before them: a drain
// ends with its interval, and asks nothing of who comes then. Who comes after many, when nobody had anything to send, finds
// nothing of what was left for others, but the number of connections that was found.
func (p *Tuner) Skip(d Decision, intervals int) Decision {
	if intervals > idle && p.Share != Raw {
		n := NewTuner(p.Settings)
		n.count.now, n.count.brought = p.count.now, p.count.brought
		*p = *n
		return p.Step(Measure{})
	}
	if p.drain.cap == 0 {
		return d
	}
	p.drain = drain{}
	p.asked, d.Cap, d.Why = p.cap, p.cap, Holds
	d = p.limited(d)
	p.why.under = d
	return d
}

// Verdict is what of the path binds, as far as that can be told.
func (p *Tuner) Verdict() Verdict {
	c := &p.why
	return Verdict{c.found, c.rate.of, c.loss.of, c.held.of, p.count.now}
}

// shape changes the cap by the queue. BBR holds a round trip's worth of bytes in a queue, others fill it. A long queue is
// drained within an interval; a little less than what the path carries then leaves it short.
func (p *Tuner) shape(m *Measure) Reason {
	queue, target := m.queue(), m.target()
	if p.empty++; queue > target/2 {
		p.empty = 0
	}
	if queue < target { // where it is long, what is lost may have found it full
		p.chance += (min(m.loss(), mostChance) - p.chance) / 8
	}
	if p.BBR && queue < target && p.cap > 0 && p.asked == p.cap { // the cap is what bound it, and no drain
		p.use += (min(max(m.Rate/(1-m.loss())/p.asked, leastUse), 1) - p.use) / 4
	}
	p.path.follow(m, p.cap > 0, p.asked, p.chance)
	if p.drain.more > 0 && queue > target {
		p.drain.more--
		return Drains
	}
	p.judge(m)
	switch {
	case queue <= 2*target && p.path.probe(m):
		p.drain = drain{cap: max(m.Rate*(1-min((queue+2*target).Seconds()/m.Length.Seconds(), 1-deepest)), m.least())}
		return Drains
	case queue > 2*target:
		if p.cap == 0 {
			if p.first++; p.first < 2 { // one may be a burst, or a processor that was not there
				return Holds
			}
		}
		// What arrives is less than what the link carries by what chance takes of it: else each interval would ask for less.
		carries := m.Rate / (1 - min(p.chance, m.loss()))
		// A link of ours that becomes slower carries less than we ask for. Where it is others who take what we leave, it carries
		// all that we ask for, again and again less, and its queue is long again. A link that stands still for a moment, for its
		// switch is a program without a processor, has both: a long queue, and less that it has carried.
		switch slower := carries < lags*p.use*p.asked; {
		case p.cap == 0 || carries > p.took || slower || p.slower: // in the interval in which it changes it carries some of both
			p.took, p.slower = carries, slower
		case carries < fallen*p.took:
			p.stays = others
		}
		p.cap = max(below*carries/p.use, down*p.cap, m.least())
		p.drain = m.drained(carries, p.cap, target, 2*target)
		if p.Share == Full && p.path.doubts() { // so much less says what little does not; others yield by more than that soon
			p.drain.cap = max(deepest*min(carries, p.cap), m.least())
		}
		return Drains
	case queue < target:
		p.first, p.held, p.alien = 0, 0, 0
		if p.cap == 0 {
			if p.empty > several { // nobody is there, and CUBIC may never fill what there is
				p.again = false
			}
			return Holds
		}
		if p.empty > several {
			p.cap *= fast
			p.took = 0
		} else {
			p.cap *= up
		}
		switch {
		case p.cap <= free*m.Rate:
		case p.again: // CUBIC cannot use what there is
			p.again = false
		default:
			p.cap = 0
		}
		return Grows
	}
	return p.hold(m)
}

// hold is what becomes of a cap while the queue is as long as it should be. One of ours is as it is because the cap is what the
// link carries. Where it is none of ours the link may carry much more, and no shorter queue would ever say so: each several
// intervals it is drained, which costs the link nothing while it is ours, and where it does not heed that the cap grows.
func (p *Tuner) hold(m *Measure) Reason {
	if p.first = 0; p.cap == 0 {
		return Holds
	}
	if p.held++; p.held%several == 0 {
		carries := m.Rate / (1 - min(p.chance, m.loss()))
		p.drain = m.drained(carries, p.cap, m.target()/2, m.target())
		return Drains
	}
	if p.alien == 0 {
		return Holds
	}
	if p.cap *= up; p.cap > free*m.Rate {
		p.cap, p.again = 0, false
	}
	return Grows
}

// excess is which part of an interval's bytes the queue has beyond a goal: the path carries those while they are not sent.
func (m *Measure) excess(goal time.Duration) float64 {
	return min((m.queue()-goal).Seconds()/m.Length.Seconds(), 1-deepest)
}

// judge asks, behind a drain, who keeps the queue up. While nobody else sends, the link goes on to carry what it did, and the
// queue falls by what we sent less: an acknowledgement of now tells of what was sent when it had fallen for all of the drain but
// one round trip, which itself became shorter. Others who keep it full send more as soon as we send less: windows of theirs wait for
// nothing else, and the queue stays. Of a queue of both, the part of the link that others have is about what does not fall.
func (p *Tuner) judge(m *Measure) {
	before := p.drain
	p.drain = drain{}
	part := before.cap / max(before.rate, 1)
	falls := min(time.Duration((1-part)/part*float64(m.Now.Sub(before.began)-before.queue-m.MinRTT)), before.queue)
	switch {
	case before.rate == 0: // there was none
		if m.queue() < m.target() {
			p.stays = 0
		}
	case m.queue() <= before.over || falls > 0 && before.queue-m.queue() >= falls/2:
		p.stays, p.alien, p.path.best = 0, 0, before.rate
		p.falls++
		p.again = p.again && p.falls < others
	case falls <= 0: // less was carried before than we may ask for
	case m.Rate < 0.9*before.cap*(1-m.loss()): // the link has become slower than it was before, and nothing follows
	case before.over > m.target():
		p.stays++
		p.falls = 0
	default:
		p.alien++
	}
}

// yield begins a time in which others have their part. It is once only that BBR gives back what it has taken. What a number of
// connections brought until then says nothing of what it brings after.
func (p *Tuner) yield(m *Measure) {
	p.count.stop()
	if !p.again {
		p.since, p.part = 0, 0
		if p.BBR || p.Share == Yield {
			n := float64(p.flows(m))
			p.part = p.took * n / (n + assumed)
			if m.Now.Sub(p.left) < 2*lookAgain { // a look found the queue short for a while: what it had was no more than its part
				p.part = max(p.part, min(p.got, p.took/2))
			}
			p.part = max(p.part, m.least()/float64(max(m.Flows, 1)))
		}
	}
	p.stays, p.alien, p.held, p.drain, p.cap, p.asked, p.took, p.again = 0, 0, 0, drain{}, 0, 0, 0, false
	p.beside, p.path.longer, p.pulse = m.Now.Add(lookAgain), 0, 0
}

// flows is as how many a network without agents would see what is carried, or one that goes on to yield.
func (p *Tuner) flows(m *Measure) int {
	if p.Share == Yield {
		return 1
	}
	return min(max(int(p.Weight*float64(m.Sessions)+0.5), 1), p.Most)
}

// asBeside is by which control, and over how many connections.
func (p *Tuner) asBeside(d *Decision, m *Measure) {
	d.Beside = true
	if p.Share != Full {
		d.Control, d.Connections = "cubic", p.flows(m)
	}
}

// besideOthers is what is done while others keep a queue up, and to drain it empties nothing but our part of it; in Full what
// the congestion control gets.
func (p *Tuner) besideOthers(d Decision, m *Measure) Decision {
	p.asBeside(&d, m)
	d.Why = Beside
	switch {
	case p.pulse > 0:
		p.pulses(&d, m)
	case p.Share == Fair:
		p.since++
		d.Cap = p.giveBack(&d, m)
	case p.Share == Yield:
		switch queue, target := m.queue(), m.target(); {
		case !m.Bound:
		case queue > 2*target:
			p.part = max(min(m.Rate, p.part)*(1-m.excess(target)), down*p.part, m.least()/float64(max(m.Flows, 1)))
		case queue < target: // what they leave
			p.part *= up
		}
		d.Cap = p.part
	}
	p.asked = d.Cap
	return p.limited(d)
}

// pulses sends a good part of the most that there was, for some intervals; behind them it is given back as at first. CUBIC, which
// does not send what it is asked for where something is lost, has four times as many connections.
func (p *Tuner) pulses(d *Decision, m *Measure) {
	d.Cap = p.path.pulse
	if p.pulse--; !p.BBR {
		d.Connections = min(4*d.Connections, p.Most)
		return
	}
	if d.Control = "bbr"; p.pulse == 0 {
		n := float64(p.flows(m))
		p.since, p.part = 0, max(d.Cap*n/(n+assumed), m.least()/float64(max(m.Flows, 1)))
	}
}

// giveBack is the cap while BBR becomes CUBIC, which finds BBR's window, several times as large as those of others, and no
// threshold, so that it would go on to double it (Linux tcp_reinit_congestion_control, bbr_init). Nothing but a loss makes CUBIC's
// window smaller, by 0.3; TCP_WINDOW_CLAMP is about what is received. But BBR's own follows what it may send. So it is capped
// before, and CUBIC until its first loss: then it has its threshold, and competes as others do.
func (p *Tuner) giveBack(d *Decision, m *Measure) float64 {
	switch {
	case p.part == 0:
	case p.since <= back:
		d.Control = "bbr"
	case p.since > back+1 && m.Resent > 0:
		p.part = 0
	default: // others grow, too
		p.part *= up
	}
	return p.part
}

// limited keeps to the operator's limit.
func (p *Tuner) limited(d Decision) Decision {
	if p.Limit > 0 && (d.Cap == 0 || d.Cap > p.Limit) {
		d.Cap, d.Why = p.Limit, Limited
	}
	return d
}
