package emu

import (
	"time"

	"golang.org/x/sys/unix"
)

// A pace decides how a thread waits for a due time, and before whom it runs.
//
// It is a deadline thread where the kernel admits one: nothing but another such thread with an
// earlier deadline runs before it, for at most its share of each millisecond. A FIFO thread stands
// still for 50 ms at a time when ordinary programs want the processor too (the kernel keeps 5 % of
// each second for them), and so does an ordinary one that has used its share; the first is second
// choice while there is little to do, the second otherwise.
//
// With little to do it sleeps until shortly before the due time and watches the clock for the rest,
// and is late by a microsecond; with much to do it sleeps to the end.
type pace struct {
	eager    bool
	deadline bool          // admitted
	realtime bool          // runs before ordinary programs
	busy     float64       // share of the last window that was worked, without watching the clock
	from     time.Duration // of the window
	slept    time.Duration // in it
	watched  time.Duration // in it
	waits    int           // in it
	working  time.Duration // worked in all windows since counting began
	counted  time.Duration // and how long they were

	share  time.Duration // of each pacePeriod
	turn   time.Duration // when the present period began
	napped time.Duration // in it
}

const (
	paceWindow = 20 * time.Millisecond
	busyAbove  = 0.6                   // of the window, the clock watched or to be watched
	watchClock = 40 * time.Microsecond // what a sleep may be late by
	longest    = 100 * time.Millisecond
)

// Shares of each pacePeriod that are asked for in turn; the kernel refuses what is no longer there.
var paceShares = []time.Duration{800 * time.Microsecond, 400 * time.Microsecond, 200 * time.Microsecond}

const (
	pacePeriod = time.Millisecond
	shareSpare = 50 * time.Microsecond // left of a share for the pause to begin in time
)

// sleep is how long to wait for a moment that is d away.
func (p *pace) sleep(d time.Duration) time.Duration {
	if p.eager {
		d -= watchClock
	}
	return min(max(d, 0), longest)
}

// waited takes note of the work until from and the wait from then on, which was meant to take so
// long, and may change the pace.
func (p *pace) waited(from, to, meant time.Duration) {
	p.waits++
	if meant > 0 {
		p.slept += to - from
		p.napped += to - from
	} else {
		p.watched += to - from
	}
	if to-p.from < paceWindow {
		return
	}
	window := float64(to - p.from)
	p.busy = 1 - float64(p.slept+p.watched)/window
	p.working += to - p.from - p.slept - p.watched
	p.counted += to - p.from
	if !p.eager {
		p.watched = time.Duration(p.waits) * watchClock
	}
	if eager := p.busy+float64(p.watched)/window < busyAbove; eager != p.eager {
		p.set(eager)
	}
	p.from, p.slept, p.watched, p.waits = to, 0, 0, 0
}

// worked is the share of the time that was worked since counting began.
func (p *pace) worked() float64 {
	if p.counted == 0 {
		return p.busy
	}
	return float64(p.working) / float64(p.counted)
}

// rest is how long the thread has to pause now. The kernel looks at a deadline thread's share only at
// its ticks, and makes one that took too much stand still for as long: several milliseconds. One that
// pauses in time stands still for a part of one.
func (p *pace) rest(now time.Duration) time.Duration {
	if !p.deadline {
		return 0
	}
	if now-p.turn >= pacePeriod {
		p.turn, p.napped = now, 0
		return 0
	}
	if now-p.turn-p.napped < p.share-shareSpare {
		return 0
	}
	return p.turn + pacePeriod - now
}

// set changes the pace; without the right to run before others the thread stays an ordinary one.
func (p *pace) set(eager bool) {
	p.eager = eager
	if p.deadline {
		return
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Policy: unix.SCHED_NORMAL, Nice: -10}
	if eager {
		attr.Policy, attr.Nice, attr.Priority = unix.SCHED_FIFO, 0, 1
	}
	p.realtime = unix.SchedSetAttr(0, &attr, 0) == nil && eager
}

// begin prepares the calling thread. Its sleeps are not rounded up.
func (p *pace) begin() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) //nolint:errcheck // sleeps are longer then
	for _, share := range paceShares {
		attr := unix.SchedAttr{
			Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Policy: unix.SCHED_DEADLINE,
			Runtime: uint64(share), Deadline: uint64(pacePeriod), Period: uint64(pacePeriod),
		}
		if unix.SchedSetAttr(0, &attr, 0) == nil {
			p.deadline, p.realtime, p.share = true, true, share
			break
		}
	}
	p.set(true)
}
