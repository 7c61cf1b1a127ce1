package load

import "time"

// What the paper chose: how much of the standing queue counts, and which share of a link is to be used.
const (
	queueShare = 0.5
	aim        = 0.98
)

// A meter measures the load of one link over intervals.
type meter struct {
	end     time.Duration // of the interval under way
	bytes   uint64        // that arrived for the link in it
	least   uint64        // of the queue: what stood there all the time
	load    float64       // of the last whole interval
	level   Level
	highest float64
}

// arrive counts a packet that is about to wait behind a queue for a link of a rate.
func (m *meter) arrive(now, interval time.Duration, bytes, queue, rate uint64) Level {
	if now >= m.end {
		m.turn(now, interval, rate)
	}
	m.bytes += bytes
	m.least = min(m.least, queue)
	return m.level
}

// turn draws the sum of an interval. One in which nothing came at all has no load.
func (m *meter) turn(now, interval time.Duration, rate uint64) {
	if m.load = 0; now < m.end+interval && m.end > 0 {
		carries := float64(rate) / 8 * interval.Seconds()
		m.load = (float64(m.bytes) + queueShare*float64(m.least)) / (aim * carries)
	}
	m.level, m.highest = levelOf(m.load), max(m.highest, m.load)
	m.end, m.bytes, m.least = now+interval, 0, ^uint64(0)
}
