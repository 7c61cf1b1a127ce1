package tune

import "time"

// A path is how long the way there and back is. The kernel's own answer, min_rtt, is the shortest round trip of the last 300 s
// (net.ipv4.tcp_min_rtt_wlen). Two things make it wrong: a queue that others keep up for longer than that becomes length, and
// a route that has become longer is a queue until then. So the shortest that there ever was counts, until what looks like a queue
// is proved to be none: nothing that we send makes it move, and nothing is lost in it. A queue of ours falls by what we send
// less. One of others has flows behind it that grow until something is lost, and that take what we leave; it moves by both, if
// what we send is no small part of it all. A longer route that loses more than the one before loses as others' queues do: it is told
// from these by what a queue would do when most of what we send is given up at once, which is what happens when others are found.
// Where that has not shown anything, more is sent for a moment while others have their part, and given up again; CUBIC, which cannot
// send more where something is lost, does that with more connections, and looks whether more is lost.
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

	best         float64       // what it has carried of ours, bytes a second
	run          int           // intervals, one after the other, in which the round trip did not move
	began        time.Time     // when
	low, high    time.Duration // of the round trip in them
	top          float64       // the most that it has carried of ours at any time, bytes a second
	most, last   float64       // in these intervals, and in the last of them
	fall, given  float64       // by how much it was less in one than in the one before, and by how much because we asked for no more
	sent, resent uint64        // in them, bytes
	weak         bool          // something was lost, or it began with so little that nothing says whose the queue is
	wait         time.Duration // until it is tried again whether a round trip that does not move is length
	tries        time.Time     // when
	pulse        float64       // how much is sent then, bytes a second
	rate, part   float64       // what was carried of ours before that, bytes a second, and which part was lost
}

const (
	// still is for how many intervals a round trip that does not move is no queue, and stillFor for how long at least: flows of
	// CUBIC that share a link of 100 Mbit/s come from one loss to the next in some seconds.
	still    = 6
	stillFor = 2 * time.Second
	// trial is how long what was taken for length may prove to be none.
	trial = lookAgain
	// few is how many bytes are lost more than is expected, where some are, before that says anything: one segment may be much.
	few = 4 * 1448
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

// follow takes an interval: what it sent was capped, or not, and how much was asked for, if that was a number; chance is what is
// lost without a queue.
func (p *path) follow(m *Measure, capped bool, asked, chance float64) {
	p.best, p.top = max(p.best, m.Rate), max(p.top, m.Rate)
	more := float64(m.Resent) - (2*chance+1e-4)*float64(m.Sent)
	if m.Now.Before(p.until) && (more > few || chance < 1e-4 && more > 0) {
		p.longer = 0
	}
	switch {
	case !capped || m.queue() < m.target():
		p.run = 0
		return
	case p.run > 0 && max(p.high, m.RTT)-min(p.low, m.RTT) <= m.target()/4:
		p.run++
		p.low, p.high = min(p.low, m.RTT), max(p.high, m.RTT)
		p.most = max(p.most, m.Rate)
		p.fall = max(p.fall, p.last-m.Rate)
		if m.Rate >= 0.8*asked*(1-m.loss()) && asked > 0 {
			p.given = max(p.given, p.last-m.Rate)
		}
	default:
		p.run, p.began, p.low, p.high = 1, m.Now, m.RTT, m.RTT
		p.most, p.fall, p.given, p.sent, p.resent = m.Rate, 0, 0, 0, 0
		p.weak = m.Rate < p.best/2 // whatever we do with so little moves nothing
	}
	p.last, p.sent, p.resent = m.Rate, p.sent+m.Sent, p.resent+m.Resent
	p.weak = p.weak || m.loss() > 2*chance+1e-4
}

// firm reports whether a queue would have moved, if there were one, whatever was lost in it: of the most that we ever had on the
// way a good part was taken off it at once, by us, or by what was lost. Others need many round trips to fill that. A little, such as
// a flow of CUBIC gives up at a loss, they fill within an interval, and what we send more shows nothing where a queue has no room.
func (p *path) firm() bool {
	at := Measure{MinRTT: p.shortest}
	least := 2 * at.target().Seconds() / p.low.Seconds()
	return p.given > max(least, 0.25)*p.top || p.fall > max(least, 0.6)*p.top
}

// doubts reports whether the round trip does not move, and what is lost does not let that be enough.
func (p *path) doubts() bool { return p.run > 1 && p.weak && !p.firm() }

// stands reports whether the round trip may be the path's length.
func (p *path) stands() bool { return p.run > 1 && !p.doubts() }

// proved reports whether it is, and takes it for that.
func (p *path) proved(now time.Time) bool {
	if p.run < still || now.Sub(p.began) < stillFor || p.doubts() {
		return false
	}
	p.take(now)
	return true
}

// lost is which part of what was sent was lost while the round trip did not move, by chance; no less than was known.
func (p *path) lost(chance float64) float64 {
	return min(max(chance, float64(p.resent)/float64(max(p.sent, 1))), mostChance)
}

// take has the round trip that does not move be the path's length, on trial.
func (p *path) take(now time.Time) {
	p.longer, p.until, p.run = p.low, now.Add(trial), 0
	p.probes, p.best, p.top = now.Add(trial), p.most, p.most
}

// asks reports whether it is time to send more for a moment, while others have their part, and then less, to see whether the
// round trip heeds that: it has not moved for long, though all that time something was lost, by which others' queues do move.
// Each time is later than the one before.
func (p *path) asks(m *Measure) bool {
	if p.run < still || !p.weak || p.resent == 0 || m.Now.Sub(p.began) < lookAgain/2 || m.Now.Before(p.tries) {
		return false
	}
	p.wait = min(max(2*p.wait, firstRest), lastRest)
	p.tries = m.Now.Add(p.wait)
	if p.pulse *= 0.75; p.pulse < 0.35*p.top { // a route that is another one may carry less, too
		p.pulse = p.top / 2
	}
	p.rate, p.part = m.Rate, p.lost(0)
	p.sent, p.resent = 0, 0
	return true
}

// heedless reports whether the round trip did not move, and no larger part was lost, though several times as much was carried of
// ours as before: where others fill a queue it is lost by what all of us send.
func (p *path) heedless() bool {
	return p.run > still && p.last > 2*p.rate && p.lost(0) < 1.25*p.part
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
