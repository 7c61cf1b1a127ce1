package registry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/internal/linux/descriptors"
)

// programs say what the processes that hold listeners do. They are asked about those at which connections wait.
type programs struct {
	proc    string       // where processes are seen
	post    func(func()) // runs in the loop
	holders map[uint32][]int
	threads map[int]thread
	last    map[int]thread // at the look before
	wanted  map[uint32]bool
	next    time.Time // when a search may begin
	running bool
}

// A thread is a sample of one thread's schedstat.
type thread struct{ ran, waited time.Duration }

// A search is repeated, since programs fork workers, but not soon: it reads the descriptors of all processes.
const (
	searchAgain = time.Second
	searchShare = 50 // of the time, at most
)

func newPrograms(post func(func())) programs {
	return programs{proc: "/proc", post: post, holders: map[uint32][]int{}, threads: map[int]thread{}, wanted: map[uint32]bool{}}
}

// meet looks for the programs of listeners that are new.
func (p *programs) meet(looks map[uint64]*listenerLook) {
	for _, l := range looks {
		if _, known := p.holders[l.inode]; !known {
			p.wanted[l.inode] = true
		}
	}
	if len(p.wanted) > 0 && !p.running && time.Now().After(p.next) {
		p.search()
	}
}

// watch fills in what the programs of the listeners did since the last look.
func (p *programs) watch(looks map[uint64]*listenerLook, elapsed time.Duration) {
	for _, l := range looks {
		p.wanted[l.inode] = true
		pids, known := p.holders[l.inode]
		if !known {
			l.Program = serving.Program{Known: true} // it is being looked for
			continue
		}
		l.Program = p.together(pids, elapsed)
	}
}

// endLook keeps what the next look compares with.
func (p *programs) endLook() { p.last, p.threads = p.threads, map[int]thread{} }

// together is what the processes that hold a listener did.
func (p *programs) together(pids []int, elapsed time.Duration) (prog serving.Program) {
	all := map[int]activity{}
	for _, pid := range pids {
		if did, ok := p.sample(pid, elapsed); ok { // else it has ended
			all[pid] = did
			prog.Starved = max(prog.Starved, did.starved)
		}
	}
	prog.Known = len(all) > 0
	prog.Stopped, prog.Partly = stopped(all)
	return prog
}

// stopped reports whether of processes that hold one listener none that may accept runs, or only some. A process that is
// the parent of others, as nginx's master is, leaves accepting to these; but where it is a parent for each connection it
// accepts itself, so that a stopped one counts for all.
func stopped(all map[int]activity) (whole, partly bool) {
	parents := map[int]bool{}
	for _, did := range all {
		parents[did.parent] = true
	}
	runs, parent := false, false
	for pid, did := range all {
		partly = partly || did.stopped
		parent = parent || did.stopped && parents[pid]
		runs = runs || !did.stopped && !parents[pid]
	}
	whole = parent || !runs && len(all) > 0
	return whole, partly && !whole
}

// An activity is what a process did since the last look.
type activity struct {
	parent  int
	stopped bool // or dead and not yet waited for
	starved time.Duration
}

// sample looks at one process.
func (p *programs) sample(pid int, elapsed time.Duration) (did activity, ok bool) {
	tasks, err := os.ReadDir(filepath.Join(p.proc, strconv.Itoa(pid), "task"))
	if err != nil {
		return did, false
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		dir := filepath.Join(p.proc, strconv.Itoa(pid), "task", task.Name())
		state, parent := statOf(dir)
		did.parent = parent
		if strings.ContainsRune("TtZX", rune(state)) {
			did.stopped = true
		}
		now, ok := schedstat(dir)
		if !ok {
			continue // a kernel without CONFIG_SCHED_INFO: the clock counts
		}
		p.threads[tid] = now
		if before, ok := p.last[tid]; ok {
			did.starved = max(did.starved, starved(before, now, state, elapsed))
		}
	}
	return did, true
}

// starved is for how long of the time a thread wanted a processor and had none. The kernel counts that only once the
// thread gets one; until then it is runnable and has not run.
func starved(before, now thread, state byte, elapsed time.Duration) time.Duration {
	waited := now.waited - before.waited
	if state == 'R' {
		waited = max(waited, elapsed-(now.ran-before.ran))
	}
	return min(max(waited, 0), elapsed)
}

// statOf is the state and the parent of a stat file: they stand behind the command's name, which may hold anything.
func statOf(dir string) (state byte, parent int) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	at := bytes.LastIndexByte(text, ')')
	if err != nil || at < 0 || at+2 >= len(text) {
		return '?', 0
	}
	_, _ = fmt.Sscanf(string(text[at+1:]), " %c %d", &state, &parent)
	return state, parent
}

// schedstat reads nanoseconds on a processor, nanoseconds of waiting for one, and turns.
func schedstat(dir string) (t thread, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, "schedstat"))
	if err != nil {
		return t, false
	}
	n, _ := fmt.Sscan(string(text), &t.ran, &t.waited)
	return t, n == 2
}

// search looks for the processes that hold the wanted listeners, beside the loop.
func (p *programs) search() {
	wanted := p.wanted
	p.wanted, p.running = map[uint32]bool{}, true
	go func() {
		began := time.Now()
		found := holdersOf(wanted)
		took := time.Since(began)
		p.post(func() {
			for inode := range wanted {
				p.holders[inode] = found[inode] // none: it cannot be looked at
			}
			if len(p.holders) > 4*len(wanted)+64 { // of listeners that are gone
				p.holders = found
			}
			p.next, p.running = time.Now().Add(max(searchAgain, searchShare*took)), false
		})
	}()
}

// holdersOf looks through /proc for the processes that hold the sockets.
func holdersOf(wanted map[uint32]bool) map[uint32][]int {
	found := map[uint32][]int{}
	descriptors.Each(func(link, target string) bool {
		if inode, ok := descriptors.Socket(target); ok && wanted[inode] {
			pid, _ := strconv.Atoi(filepath.Base(descriptors.Process(link)))
			found[inode] = append(found[inode], pid)
		}
		return true
	})
	return found
}
