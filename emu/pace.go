package emu

import (
	"time"

	"golang.org/x/sys/unix"
)

// A pace decides how to wait for a due time. With little to do the thread is a real-time one, sleeps
// until shortly before and watches the clock for the rest: it is late by a microsecond. With much to
// do it is an ordinary thread and sleeps to the end: the kernel keeps a part of each second from
// real-time threads, and one that takes all it can get would stand still for 50 ms at a time.
type pace struct {
	eager    bool
	realtime bool
	busy     float64       // share of the last window that was not slept
	from     time.Duration // of the window
	slept    time.Duration // in it
}

const (
	paceWindow = 20 * time.Millisecond
	busyAbove  = 0.6
	idleBelow  = 0.3
	watchClock = 40 * time.Microsecond // what a sleep may be late by
	longest    = 100 * time.Millisecond
)

// sleep is how long to wait for a moment that is d away.
func (p *pace) sleep(d time.Duration) time.Duration {
	if p.eager {
		d -= watchClock
	}
	return min(max(d, 0), longest)
}

// waited takes note of a wait and may change the pace.
func (p *pace) waited(from, to time.Duration, meant time.Duration) {
	if meant > 0 {
		p.slept += to - from
	}
	if to-p.from < paceWindow {
		return
	}
	p.busy = 1 - float64(p.slept)/float64(to-p.from)
	p.from, p.slept = to, 0
	switch {
	case p.eager && p.busy > busyAbove:
		p.set(false)
	case !p.eager && p.busy < idleBelow:
		p.set(true)
	}
}

// set changes the pace; without the right to be a real-time thread it stays an ordinary one.
func (p *pace) set(eager bool) {
	p.eager = eager
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -10}
	if eager {
		attr.Policy, attr.Nice, attr.Priority = unix.SCHED_FIFO, 0, 1
	}
	err := unix.SchedSetAttr(0, &attr, 0)
	p.realtime = eager && err == nil
}

// begin prepares the thread: a sleep is not rounded up, and what it starts is not real-time.
func (p *pace) begin() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) //nolint:errcheck // sleeps are longer then
	p.set(true)
}
