package load

import (
	"math"
	"time"
)

// What the paper chose for an interval: the factors of growth and of shrinking, and the step.
const (
	growth   = 0.0625
	step     = 1.0 // packets
	shrink   = 0.875
	fewest   = 1.0 // packets
	renoHalf = 0.5
	first    = 2.0 // packets that a window begins with
)

// A Window is how many packets a sender may have under way. It has no clock. The zero value obeys marks.
type Window struct {
	Interval time.Duration // over which routers measure; 0 is Interval
	Blind    bool          // marks are ignored: it doubles with each round trip until the first loss, then grows by one packet
	Longest  float64       // packets at most; 0 is no limit

	size   float64       // packets; 0 before the first use
	smooth time.Duration // round trip
	frozen time.Duration // until when nothing changes
	steady bool          // of a blind one: it has lost something
}

// Packets are how many may be under way.
func (w *Window) Packets() int { return max(1, int(w.now())) }

// RoundTrip is the smoothed round trip, 0 before the first answer.
func (w *Window) RoundTrip() time.Duration { return w.smooth }

func (w *Window) now() float64 {
	if w.size == 0 {
		w.size = first
	}
	if w.Interval == 0 {
		w.Interval = Interval
	}
	if w.Longest > 0 {
		w.size = min(w.size, w.Longest)
	}
	return w.size
}

// Answered takes the answer to one packet: its round trip, and the highest load that it met. The growth of a whole
// round trip is spread over the packets of a window.
func (w *Window) Answered(now, trip time.Duration, met Level) {
	size := w.now()
	if w.smooth += (trip - w.smooth) / 8; w.smooth < trip/8*2 {
		w.smooth = trip // the first
	}
	if w.Blind {
		if !w.steady {
			w.size++
		} else {
			w.size += step / size
		}
		return
	}
	part := w.smooth.Seconds() / w.Interval.Seconds()
	switch {
	case met == Overload && now >= w.frozen:
		w.size = max(fewest, size*shrink)
		w.frozen = now + w.Interval + w.smooth // routers have seen it by then, and so have we
	case now < w.frozen:
	case met == Low:
		w.size += math.Pow(1+growth, part) - 1
	case met == High:
		w.size += step * part * part / size // the square lets flows with other round trips have the same rate
	}
}

// Lost takes the news that something was lost.
func (w *Window) Lost(now time.Duration) {
	size := w.now()
	if now < w.frozen {
		return
	}
	w.size, w.steady = max(fewest, size*renoHalf), true
	w.frozen = now + w.smooth
}

// Silent takes the news that nothing is answered any more.
func (w *Window) Silent() { w.size, w.steady = fewest, true }
