package member

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"scaffold.dev/scaffold/internal/core/backoff"
)

// First is how long a member waits at first until it comes back: all members lost their controller at once.
const First = 25 * time.Millisecond

// A Patience is how long to wait between attempts to reach the controller: about First, and about twice as long after each
// that comes to nothing.
type Patience struct {
	Last    time.Duration // no longer than this
	Standby time.Duration // nor than this after one that does not lead, if it says so; 0: Last
	Final   time.Duration // this after a refusal that will not change by itself; 0: as after any other
	pause   backoff.Backoff
}

// Next is how long to wait after an attempt. fresh says that the next one goes to a controller that was not tried since the
// last that was joined: it need not wait.
func (p *Patience) Next(joined bool, err error, fresh bool) time.Duration {
	if joined {
		p.pause.Reset()
	}
	p.pause.First, p.pause.Last = First, p.Last
	switch {
	case p.Standby > 0 && errors.Is(err, ErrStandby):
		p.pause.Last = p.Standby
	case p.Final > 0 && errors.Is(err, ErrFinal):
		p.pause.Set(p.Final)
	}
	if fresh {
		return min(p.pause.Now(), First)
	}
	return p.pause.Next()
}

// Pause waits about so long, or until sooner is closed or ctx ends; over says that the time is over. Members that began
// together do not all end together.
func Pause(ctx context.Context, about time.Duration, sooner <-chan struct{}) (over bool) {
	timer := time.NewTimer(about/2 + rand.N(about))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-sooner:
	case <-ctx.Done():
	}
	return false
}
