package stripe

import "time"

// A Conn is the driver's number of a connection of the trunk.
type Conn uint64

// A Measure is what a driver knows of a connection, from TCP_INFO.
type Measure struct {
	RTT    time.Duration // smoothed
	Rate   float64       // of delivery, bytes a second; 0: not known yet
	Weight float64       // of the strategy weighted; 0 is 1
}

// A path is a connection of the trunk.
type path struct {
	id Conn
	Measure
	inflight uint64    // bytes that went out on it and are not known to have arrived
	share    float64   // bytes that it took, by its weight
	look     time.Time // when it looks for late chunks again
	rests    bool      // it takes copies alone
	retires  bool      // it takes nothing any more; then it rests, too
	doubted  bool      // it answers nothing, and takes nothing
}

// idle reports whether it takes nothing new, and nobody waits for it.
func (p *path) idle() bool { return p.rests || p.doubted }

// ahead is how long it takes until n more bytes, given to the connection now, have arrived. What the path itself holds,
// and what has arrived and is not told yet, holds nothing up; what is more waits before it.
func (p *path) ahead(n uint64) time.Duration {
	if p.Rate <= 0 {
		return p.RTT / 2
	}
	queued := max(float64(p.inflight)-p.Rate*(p.RTT+stateDelay).Seconds(), 0)
	return p.RTT/2 + time.Duration((queued+float64(n))/p.Rate*float64(time.Second))
}
