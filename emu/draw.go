package emu

// What is drawn for a packet; each has its own sequence, so that one parameter does not disturb the
// others.
const (
	drawLoss = iota
	drawBurst
	drawDuplicate
	drawReorder
	drawJitter
)

// draw is a number in [0, 1) that depends on its arguments alone: two rounds of the finalizer of
// SplitMix64 (Steele, Lea and Flood 2014) over seed, purpose and packet number.
func draw(seed uint64, what int, n uint64) float64 {
	x := mix(seed+uint64(what)*0xd1342543de82ef95) + n*0x9e3779b97f4a7c15
	return float64(mix(x)>>11) / (1 << 53)
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Seeds derives the seeds of the two directions of a link from one.
func Seeds(seed uint64) [2]uint64 { return [2]uint64{mix(seed), mix(mix(seed) + 1)} }

// A fate is why a packet is lost.
type fate uint8

const (
	passes fate = iota
	lostAlone
	lostInBurst
)

// losses decides which packets are lost. The state of bursts follows from the draws of all packets
// before, in their order.
type losses struct{ bad bool }

// next is the fate of packet n; it is to be asked for each packet in turn.
func (l *losses) next(p *Params, n uint64) fate {
	if p.BurstLoss > 0 {
		u := draw(p.Seed, drawBurst, n)
		if l.bad {
			l.bad = u >= 1/p.burst()
		} else {
			l.bad = u < p.enter()
		}
		if l.bad {
			return lostInBurst
		}
	}
	if p.Loss > 0 && draw(p.Seed, drawLoss, n) < p.Loss {
		return lostAlone
	}
	return passes
}

// Predict says how many of the first n packets are lost on the way, by these parameters and their
// seed: a [Line] loses exactly these, unless its parameters change or its queue overflows.
func (p Params) Predict(n uint64) (lost uint64) {
	var l losses
	for i := range n {
		if l.next(&p, i) != passes {
			lost++
		}
	}
	return lost
}
