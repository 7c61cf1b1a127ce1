package tune

import (
	"math"
	"slices"
	"time"
)

// A road is a path as a fluid, in steps of a twentieth of its round trip: a queue that all flows share, first in, first out,
// and whose length is what has come less what has left, nothing else. It knows no packets, but what each control is known to
// do: CUBIC grows by its polynomial until it loses something (RFC 9438), BBR sends by the most that it saw arrive in ten round
// trips and has two of them on the way (BBRv1). What chance takes it takes before the queue.
// What is measured of it is as late as acknowledgements are.
type road struct {
	link   float64       // bytes a second
	rtt    time.Duration // there and back, without a queue
	buffer time.Duration
	loss   float64                     // by chance
	others int                         // flows beside us, of CUBIC
	pushy  bool                        // or of BBR
	late   bool                        // they begin when we do, and not before
	send   float64                     // bytes that each connection of ours may have on its way by the buffers here; 0: as many as it will
	take   float64                     // and by those of the other agent
	police float64                     // bytes a second that something on the way lets through of each connection of ours; 0: all
	stands func(at time.Duration) bool // the link carries nothing just then; nil: never

	now    time.Time
	queue  time.Duration
	smooth time.Duration // round trip, as the kernel smooths it
	sent   []seen        // round trips that whoever sent at a time will have seen, and has not yet
	acked  []float64     // bytes of ours that have left the queue in each step, and are not acknowledged
	least  []seen        // shortest round trip of each interval: the kernel forgets them after 300 s
	ours   []*flow
	theirs []*flow

	sendHeld, takeHeld time.Duration // for how long buffers have held ours up
}

// seen is a round trip, and when.
type seen struct {
	at  time.Time
	rtt time.Duration
}

const (
	mss = 1448
	// window is how long the kernel's min_rtt holds (tcp_min_rtt_wlen).
	window = 300 * time.Second
)

// A flow is a connection of a congestion control.
type flow struct {
	bbr       bool
	window    float64 // bytes
	threshold float64 // below it is slow start
	paced     float64 // bytes a second; 0: not
	lost      float64 // packets; one is an event
	deaf      float64 // seconds in which what is lost was of the last event

	top, since float64 // of CUBIC: the window at the last event, and for how long it has grown again, seconds
	shortest   float64 // round trip of this slow start, seconds

	rounds          [10]float64 // of BBR: what arrived in each of the last ones, bytes a second
	round           int
	passed, arrived float64 // of this round: seconds, bytes
	full            float64 // what it found at the last growth of its start
	steady          int     // rounds without any; from three on it has found what there is
	queued          bool    // more than one round trip of it is on the way
}

func newFlow() *flow { return &flow{window: 10 * mss, threshold: math.Inf(1), shortest: math.Inf(1)} }

// become changes the control: the window stays, and what CUBIC finds it takes for the begin of a slow start.
func (f *flow) become(bbr bool) {
	if f.bbr != bbr {
		*f = flow{bbr: bbr, window: f.window, paced: f.paced, threshold: math.Inf(1), shortest: math.Inf(1)}
	}
}

// rate is what the flow sends, bytes a second.
func (f *flow) rate(rtt float64) float64 {
	x := f.window / rtt
	if f.bbr {
		x = min(x, f.pace())
	}
	if f.paced > 0 {
		x = min(x, f.paced)
	}
	return x
}

// pace is by what BBR takes for the bandwidth. The most of ten rounds is a little more than what there is.
func (f *flow) pace() float64 {
	most := slices.Max(f.rounds[:])
	switch {
	case most == 0:
		return math.Inf(1)
	case f.steady < 3:
		return 2.89 * most
	case f.round%8 == 0:
		return 1.25 * most
	case f.round%8 == 1 && f.queued: // else that phase is over at once
		return 0.75 * most
	}
	return 1.03 * most
}

// pass lets some seconds pass, in which bytes have arrived and packets were lost; least is the shortest round trip of late.
func (f *flow) pass(dt, rtt, least, arrived, lost float64) {
	f.lost += lost
	if f.deaf -= dt; f.deaf > 0 {
		f.lost = 0
	}
	if f.bbr {
		f.model(dt, rtt, least, arrived)
		return
	}
	f.shortest = min(f.shortest, rtt)
	limited := f.paced == 0 || f.window/rtt < f.paced
	switch {
	case f.lost >= 1:
		f.top, f.since = f.window/mss, 0
		f.window = max(0.7*f.window, 2*mss)
		f.threshold, f.deaf, f.lost = f.window, rtt, 0
	case f.window < f.threshold: // what is not in use grows to twice that (tcp_is_cwnd_limited)
		if limited || f.window < 2*f.paced*rtt {
			f.window += arrived
		}
		if rtt > f.shortest+min(max(f.shortest/8, 0.004), 0.016) { // HyStart
			f.threshold, f.top, f.since = f.window, f.window/mss, 0
		}
	case limited:
		f.since += dt
		k := math.Cbrt(f.top * 0.3 / 0.4)
		cubic := f.top + 0.4*math.Pow(f.since-k, 3)
		reno := 0.7*f.top + 0.53*f.since/rtt
		f.window = max(f.window, min(max(cubic, reno)*mss, f.window+arrived/2))
	}
}

// model is BBR's.
func (f *flow) model(dt, rtt, least, arrived float64) {
	f.passed += dt
	if f.arrived += arrived; f.passed >= rtt {
		got := f.arrived / f.passed
		f.round++
		f.rounds[f.round%len(f.rounds)] = got
		f.passed, f.arrived = 0, 0
		if got > 1.25*f.full {
			f.full, f.steady = got, 0
		} else {
			f.steady++
		}
	}
	f.queued = arrived/dt*rtt > 1.01*slices.Max(f.rounds[:])*least
	if f.steady < 3 { // whoever begins beside a queue takes it for the path's length
		f.window = max(2.89*slices.Max(f.rounds[:])*rtt, 10*mss)
		return
	}
	f.window = max(2*slices.Max(f.rounds[:])*least, 4*mss)
}

// begin has others on the road for a while before us.
func (r *road) begin() {
	r.now, r.smooth = time.Unix(0, 0), r.rtt
	if r.others > 0 && !r.late {
		r.drive(30 * time.Second)
	}
	r.least = []seen{{r.now, r.rtt}} // we were there before it began
}

// traffic has as many others on the road as there are to be.
func (r *road) traffic() {
	for len(r.theirs) < r.others {
		f := newFlow() // they have begun at different times
		f.bbr = r.pushy
		f.lost = math.Mod(0.37*float64(len(r.theirs)), 1)
		f.window *= float64(1 + len(r.theirs))
		r.theirs = append(r.theirs, f)
	}
	r.theirs = r.theirs[:r.others]
}

// drive lets time pass, and returns what of ours was sent, has arrived and was lost, in bytes.
func (r *road) drive(long time.Duration) (sent, arrived, lost float64) {
	r.traffic()
	step := r.rtt / 20
	dt := step.Seconds()
	shortest := time.Hour
	all := slices.Concat(r.ours, r.theirs)
	rates, passes := make([]float64, len(all)), make([]float64, len(all))
	before := r.recent(10*time.Second, shortest)
	for end := r.now.Add(long); r.now.Before(end); r.now = r.now.Add(step) {
		rtt := r.rtt + r.queue
		shortest = min(shortest, rtt)
		r.sent = append(r.sent, seen{r.now, rtt})
		for len(r.sent) > 0 && !r.sent[0].at.Add(r.sent[0].rtt).After(r.now) { // an acknowledgement tells of the queue that its segment found
			r.smooth += (r.sent[0].rtt - r.smooth) / 10
			r.sent = r.sent[1:]
		}
		in := 0.0
		for i, f := range all {
			rates[i] = f.rate(rtt.Seconds())
			if i < len(r.ours) {
				rates[i] = min(rates[i], r.buffers(f, rtt, step))
			}
			passes[i] = rates[i] * (1 - r.loss)
			if i < len(r.ours) && r.police > 0 {
				passes[i] = min(passes[i], r.police)
			}
			in += passes[i]
		}
		out := in
		switch {
		case r.stands != nil && r.stands(r.now.Sub(time.Unix(0, 0))):
			out = 0
		case r.queue > 0 || in > r.link:
			out = min(r.link, in+r.queue.Seconds()/dt*r.link)
		}
		queue := r.queue.Seconds() + (in-out)*dt/r.link
		over := max(queue-r.buffer.Seconds(), 0) * r.link // bytes that have found the queue full
		r.queue = min(max(time.Duration(queue*1e9), 0), r.buffer)
		left := 0.0
		recent := min(before, shortest).Seconds()
		for i, f := range all {
			part := 0.0
			if in > 0 {
				part = passes[i] / in
			}
			gone := (rates[i]-passes[i])*dt + over*part
			f.pass(dt, rtt.Seconds(), recent, out*dt*part, gone/mss)
			if i < len(r.ours) {
				sent, left, lost = sent+rates[i]*dt, left+out*dt*part, lost+gone
			}
		}
		if r.acked = append(r.acked, left); len(r.acked) > 20 { // steps in a round trip
			arrived += r.acked[0]
			r.acked = r.acked[1:]
		}
	}
	r.least = append(r.least, seen{r.now, shortest})
	return sent, arrived, lost
}

// buffers is the most that a connection of ours sends in a step by the buffers at its ends, bytes a second.
func (r *road) buffers(f *flow, rtt, step time.Duration) float64 {
	most := math.Inf(1)
	if r.send > 0 {
		most = r.send
	}
	if r.take > 0 {
		most = min(most, r.take)
	}
	switch rate := most / rtt.Seconds(); {
	case rate >= f.rate(rtt.Seconds()):
	case most == r.send:
		r.sendHeld += step
	default:
		r.takeHeld += step
	}
	return most / rtt.Seconds()
}

// recent is the shortest round trip of some time and of now.
func (r *road) recent(of, now time.Duration) time.Duration {
	for i := len(r.least) - 1; i >= 0 && r.now.Sub(r.least[i].at) < of; i-- {
		now = min(now, r.least[i].rtt)
	}
	return now
}

// pass is an interval under a decision.
func (r *road) pass(d Decision, in time.Duration, sessions int) Measure {
	for len(r.ours) < d.Connections {
		r.ours = append(r.ours, newFlow())
	}
	r.ours = r.ours[:d.Connections]
	for _, f := range r.ours {
		f.paced = d.Cap / float64(d.Connections)
		f.become(d.Control == "bbr")
	}
	began := r.now
	sent, arrived, lost := r.drive(in)
	took := r.now.Sub(began)
	defer func() { r.sendHeld, r.takeHeld = 0, 0 }()
	return Measure{
		Busy: time.Duration(d.Connections) * took, SendBuffer: r.sendHeld, ReceiveBuffer: r.takeHeld,
		Now: r.now, Length: took, Flows: d.Connections, RTT: r.smooth, MinRTT: r.recent(window, r.smooth), Rate: arrived / took.Seconds(),
		Sent: uint64(sent), Resent: uint64(lost), Bound: true, Sessions: sessions,
	}
}
