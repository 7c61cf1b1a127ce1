package tune

import "time"

// A path is how long the way there and back is. The kernel's own answer, min_rtt, is the shortest round trip of the last 300 s
// (net.ipv4.tcp_min_rtt_wlen). Two things make it wrong: a queue that others keep up for longer than that becomes length, and
// a route that has become longer is a queue until then. So the shortest that there ever was counts, until what looks like a queue
// is proved to be none: nothing that we send makes it move, and nothing is lost in it. A queue of ours falls by what we send
// less. One of others has flows behind it that grow until something is lost, and that take what we leave; it moves by both, if
// what we send is no small part of it all.
//
// What cannot be told: a queue that neither loses anything nor moves by a quarter of its target for as long as we look, in which
// others take no part of what we leave that shows. Flows that limit themselves make one (BBR beside us holds a round trip of its
// own), and large flows of CUBIC amid their growth. So what is taken for length is on trial: what is lost then, a queue that
// proves to be others', and a round trip that is clearly shorter refute it.
type path struct {
	shortest time.Duration // 0: not measured
	longer   time.Duration // what was proved since then; 0: nothing
	until    time.Time     // of the trial
	probes   time.Time     // when it is asked again whether it is shorter
	kernel   time.Duration // the kernel's, as it was told last

	best      float64       // what it has carried of ours, bytes a second
	run       int           // intervals, one after the other, in which the round trip did not move
	began     time.Time     // when
	low, high time.Duration // of the round trip in them
}

const (
	// still is for how many intervals a round trip that does not move is no queue, and stillFor for how long at least: flows of
	// CUBIC that share a link of 100 Mbit/s come from one loss to the next in some seconds.
	still    = 6
	stillFor = 2 * time.Second
	// trial is how long what was taken for length may prove to be none.
	trial = lookAgain
)

// length is that of the path. What the kernel told before says nothing new.
func (p *path) length(m *Measure) time.Duration {
	if p.shortest == 0 || m.MinRTT < min(p.kernel, p.shortest) {
		p.shortest = m.MinRTT
	}
	p.kernel = m.MinRTT
	if m.RTT > 0 {
		p.shortest = min(p.shortest, m.RTT)
	}
	if p.longer == 0 {
		return p.shortest
	}
	at := Measure{MinRTT: p.longer}
	switch {
	case m.RTT < p.longer-at.target()/2: // another route again, and perhaps with a queue
		p.longer = 0
		return p.shortest
	case m.RTT > 0:
		p.longer = min(p.longer, m.RTT)
	}
	return p.longer
}

// follow takes an interval: what it sent was capped, or not; chance is what is lost without a queue.
func (p *path) follow(m *Measure, capped bool, chance float64) {
	p.best = max(p.best, m.Rate)
	loses := m.loss() > 2*chance+1e-4
	if loses && m.Now.Before(p.until) {
		p.longer = 0
	}
	switch {
	case !capped || m.queue() < m.target() || loses:
		p.run = 0
	case p.run > 0 && max(p.high, m.RTT)-min(p.low, m.RTT) <= m.target()/4:
		p.run++
		p.low, p.high = min(p.low, m.RTT), max(p.high, m.RTT)
	case m.Rate < p.best/2: // whatever we do with so little moves nothing
		p.run = 0
	default:
		p.run, p.began, p.low, p.high = 1, m.Now, m.RTT, m.RTT
	}
}

// stands reports whether the round trip may be the path's length.
func (p *path) stands() bool { return p.run > 1 }

// proved reports whether it is, and takes it for that.
func (p *path) proved(now time.Time) bool {
	if p.run < still || now.Sub(p.began) < stillFor {
		return false
	}
	p.longer, p.until, p.run = p.low, now.Add(trial), 0
	p.probes = now.Add(trial)
	return true
}

// probe reports whether a shorter round trip is to be looked for: where the path has become as short as it was, our own queue is
// as long as it had become, and nothing shows that. The kernel's answer says it once it has forgotten what was before.
func (p *path) probe(m *Measure) bool {
	if p.longer == 0 || p.kernel >= p.longer-m.target()/2 || m.Now.Before(p.probes) {
		return false
	}
	p.probes = m.Now.Add(trial)
	return true
}
