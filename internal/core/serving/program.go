package serving

import "time"

// A Program is what the processes that hold a listener have done since the last look.
type Program struct {
	Known   bool          // they were found and looked at
	Stopped bool          // none of those that may accept runs: they are stopped, or dead and not yet waited for
	Partly  bool          // one of them is stopped, and others run
	Starved time.Duration // for how long the one that waited most was ready to run and got no processor
}

// A Verdict is why a program does not accept; Reason "" if it does, perhaps at some of its listeners only.
type Verdict struct {
	Reason string
	// Slow: it runs, and may be overloaded. Then it is not to be taken away where most of a service is so: the rest would
	// be driven over, too.
	Slow bool
	// Working of the Listeners accept; both are 0 where all do, or none.
	Working, Listeners int
}

const (
	// firstPatience is for how long a program that runs may leave connections waiting before anything is known of it. A
	// server that answers one request after another, with a question to a database in each, stays below.
	firstPatience = 500 * time.Millisecond
	// partPatience is the same for a listener of several where one of the program's processes is stopped: three looks of
	// 50 ms, as for one that is stopped as a whole, less what timers are early.
	partPatience = 140 * time.Millisecond
	// patienceFactor times what a program has usually taken between two accepts is what it may take.
	patienceFactor = 4
	// hopeless times its patience without an accept, a program that runs is no longer taken for slow.
	hopeless = 8
	// mostPatience bounds all that: a program that once hung for a minute is not waited for so long again.
	mostPatience = 10 * time.Second
	// mostElapsed is what one look counts at most: a daemon that had no processor itself was not looking.
	mostElapsed = 100 * time.Millisecond
)

// A pace is what a program takes between two accepts while connections wait, in time during which it could have run.
type pace struct {
	idle  time.Duration // so far
	usual time.Duration // of the slowest lately; it fades
	looks int           // since an accept, with something waiting
}

// wait counts a look that saw no accept.
func (p *pace) wait(elapsed time.Duration, prog Program) {
	p.looks++
	if p.looks > 1 { // what waits came at any time before the first
		p.idle += max(0, min(elapsed, mostElapsed)-prog.Starved)
	}
}

// accept ends the count: of one that had to be waited for it tells the program's pace.
func (p *pace) accept() {
	if p.looks == 0 {
		return // nothing waited
	}
	p.usual = max(p.idle, p.usual-p.usual/64)
	p.idle, p.looks = 0, 0
}

func (p *pace) patience(first time.Duration) time.Duration {
	return min(max(first, patienceFactor*p.usual), mostPatience)
}

// late reports whether the program does not accept, and whether it may only be slow. Of programs that cannot be looked
// at, and of stopped ones, the looks in a row tell.
func (p *pace) late(prog Program) (late, slow bool) {
	switch {
	case !prog.Known || prog.Stopped:
		return p.looks >= StuckAfter, false
	case prog.Partly && p.idle >= p.patience(partPatience):
		return true, false
	case p.idle >= p.patience(firstPatience):
		return true, p.idle < hopeless*p.patience(firstPatience)
	}
	return false, false
}
