package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/backoff"
)

const (
	// silence is how many beats of a worker fail to come until it is replaced: a second.
	silence = 5
	// starting is how many of them a worker may take until its first word.
	starting = 150
	// trying is the same for one of another program: where it does not work, connections are to go on by the one before.
	trying = 25
	// tolerated is how many workers in a row of a program that has worked may fail to come to work: a port that is away for a
	// moment, or memory that is short, costs one or two. With the pauses between them that takes a third of a second; all of them
	// together may take as long as one of another program (trying), for other agents wait 10 s and no longer.
	tolerated = 3
	// ending is how long a worker may take to end that is told to.
	ending = 10 * time.Second
	// lived is after how long a worker's death says nothing about the next one's: one that dies sooner is likely to do so
	// again, and would take the processor for nothing.
	lived = 500 * time.Millisecond
)

// A Config is what a keeper needs to know.
type Config struct {
	// Path and Args are of the worker's program; none: this one, even where another version has its name by now.
	Path string
	Args []string
	Log  *slog.Logger
	// Ready is called when the first worker does its work.
	Ready func()
	// Replace has the worker replaced by one of the program that is at Program by then, and by one of the last program that
	// has worked where that one does not come to work.
	Replace <-chan struct{}
	Program string
	// Given is there for the first worker, and for all others, as if one before had left it.
	Given []Found
}

// Run has a worker do its work until ctx ends, or until one says that it cannot, or the first one dies before it is ready.
func Run(ctx context.Context, c Config) error {
	k := &keeper{Config: c, entries: map[string]*entry{}}
	defer k.closeAll()
	defer func() { k.turn(); k.forgetPrograms() }()
	for _, g := range c.Given {
		k.put(g.Key, g.Value, g.FDs)
	}
	again := backoff.Backoff{First: 100 * time.Millisecond, Last: 2 * time.Second}
	for {
		k.turn()
		began := time.Now()
		why := k.once(ctx)
		var over *overError
		switch {
		case (k.taken != nil || k.worked && errors.As(why, &over)) && !k.ready && ctx.Err() == nil && !errors.Is(why, errReplaced):
			switch givesWay := k.givesWay(why, time.Since(began)); {
			case givesWay && k.taken == nil:
				return over.err
			case givesWay:
				k.fallBack()
				continue
			}
		case errors.Is(why, errReplaced):
			k.Log.Info("the worker makes room for another program", "program", k.Program, "held", len(k.entries))
			k.died = time.Now()
			continue
		case errors.As(why, &over):
			return over.err
		case ctx.Err() != nil:
			return nil
		case !k.worked:
			return fmt.Errorf("the worker ended before it was ready: %w", why)
		default:
			k.Log.Warn("the worker has died; another one goes on with its connections", "why", why, "held", len(k.entries))
			k.died = time.Now()
		}
		if time.Since(began) > lived {
			again.Reset()
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again.Next()):
		}
	}
}

// overError says that there is to be no worker after this one.
type overError struct{ err error }

func (e *overError) Error() string { return e.err.Error() }

type keeper struct {
	Config
	entries map[string]*entry
	order   []string
	worked  bool          // a worker was ready
	ready   bool          // the one that there is was
	failed  error         // why that one cannot work, by its own word
	taken   *os.File      // the program that workers run; nil: this one
	next    *os.File      // the program of the next worker on; nil: the same
	proven  *os.File      // the last program a worker of which has worked; nil: this one
	fails   int           // workers in a row of that one which did not come to work
	wasted  time.Duration // for how long they have tried
	died    time.Time     // when the last one did; zero: another one has taken over
}

// An entry is what is held under a key. Its descriptors are bare: an os.File would change how the kernel treats those of the
// worker, which are of the same connection.
type entry struct {
	value []byte
	fds   []int
}

func (k *keeper) put(key string, value []byte, fds []int) {
	if k.entries[key] == nil {
		if len(k.order) > 2*len(k.entries)+64 { // most of them were dropped
			k.clean()
		}
		k.order = append(k.order, key)
	}
	k.drop(key)
	k.entries[key] = &entry{value, fds}
}

func (k *keeper) drop(key string) {
	if e := k.entries[key]; e != nil {
		closeAll(e.fds)
		delete(k.entries, key)
	}
}

// errReplaced says that the worker was ended for another program's.
var errReplaced = errors.New("another program takes over")

// takeProgram opens the program that workers run from now on: it is the same file for all of them, until another one is to
// take over.
func (k *keeper) takeProgram() error {
	f, err := os.Open(k.Program)
	if err != nil {
		return fmt.Errorf("the program that is to take over: %w", err)
	}
	if k.next != nil {
		k.next.Close()
	}
	k.next = f
	return nil
}

// turn has the next worker run the program that was taken: not before, for what the worker that makes room for it has said of
// itself may be read only behind its end.
func (k *keeper) turn() {
	if k.next != nil {
		k.setProgram(k.next)
		k.next = nil
	}
}

// setProgram has workers run another program.
func (k *keeper) setProgram(f *os.File) {
	if k.taken != k.proven {
		k.taken.Close()
	}
	k.taken, k.fails, k.wasted = f, 0, 0
}

// givesWay reports whether the program that workers run, one of which has not come to work, makes room for the one before, or,
// where that is the keeper's own, for none: at once where none of them ever has.
func (k *keeper) givesWay(why error, took time.Duration) bool {
	if k.taken != k.proven {
		k.Log.Error("the program that was to take over does not work: the one before goes on", "program", k.Program, "why", why)
		return true
	}
	k.fails++
	k.wasted += took
	if k.fails < tolerated && k.wasted < trying*beatEvery {
		k.Log.Warn("the worker has not come to work; its program has before, and is tried again", "why", why, "held", len(k.entries))
		return false
	}
	if k.taken != nil {
		k.Log.Error("the program that took over works no more: the keeper's own goes on", "program", k.Program, "tried", k.fails, "why", why)
	}
	return true
}

// prove notes that the program works that workers run.
func (k *keeper) prove() {
	if k.taken != k.proven {
		if k.proven != nil {
			k.proven.Close()
		}
		k.proven = k.taken
	}
}

// fallBack has workers run the last program that has worked; where that is the one which does not now, this one.
func (k *keeper) fallBack() {
	if k.taken == k.proven {
		k.forgetPrograms()
		return
	}
	k.setProgram(k.proven)
}

// forgetPrograms has workers run this one again.
func (k *keeper) forgetPrograms() {
	k.setProgram(k.proven)
	if k.proven != nil {
		k.proven.Close()
	}
	k.taken, k.proven = nil, nil
}

// closeAll ends what no worker has taken care of: connections by a reset, for their streams are not whole.
func (k *keeper) closeAll() {
	for key, e := range k.entries {
		for _, fd := range e.fds {
			_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // most are no sockets
		}
		k.drop(key)
	}
}

// once is the life of one worker. The error is why it has ended.
func (k *keeper) once(ctx context.Context) error {
	w, theirs, err := pair()
	if err != nil {
		return &overError{err}
	}
	defer w.Close()
	k.ready, k.failed = false, nil
	exited := make(chan error, 1)
	process := make(chan *os.Process, 1)
	go k.start(theirs, process, exited)
	p := <-process
	if p == nil {
		return &overError{fmt.Errorf("start the worker: %w", <-exited)}
	}
	heard := make(chan message)
	done := make(chan struct{})
	defer close(done)
	go hearAll(w, heard, done)
	go giveAll(w, k.all())
	return k.watch(ctx, w, p, heard, exited)
}

// start starts the worker and waits for its end. Where the keeper dies its worker dies, too, even one that stands still;
// the kernel takes the death of the thread that has started it for the keeper's, so it is this thread's only work.
func (k *keeper) start(theirs *os.File, process chan<- *os.Process, exited chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path, args := k.Path, k.Args
	switch {
	case k.taken != nil: // whatever has its name by then
		path, args = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), k.taken.Fd()), os.Args
	case path == "":
		path, args = "/proc/self/exe", os.Args
	}
	cmd := exec.Cmd{
		Path: path, Args: args, Env: append(os.Environ(), variable+"=3"), Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{theirs},
		// Of a group of its own: what a terminal sends by Ctrl-C is for the keeper, which tells the worker in order.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	err := cmd.Start()
	theirs.Close()
	process <- cmd.Process
	if err == nil {
		if err = cmd.Wait(); err == nil {
			err = errors.New("it has ended without a word")
		}
	}
	exited <- err
}

// all are the entries in their order, as messages.
func (k *keeper) all() (all []message) {
	k.clean()
	for _, key := range k.order {
		all = append(all, message{Do: found, Key: key, Value: k.entries[key].value, fds: k.entries[key].fds})
	}
	return append(all, message{Do: begin})
}

// clean takes keys out of the order that are not there any more, and those that are there again but for their last place.
func (k *keeper) clean() {
	seen := map[string]bool{}
	slices.Reverse(k.order)
	k.order = slices.DeleteFunc(k.order, func(key string) bool {
		gone := k.entries[key] == nil || seen[key]
		seen[key] = true
		return gone
	})
	slices.Reverse(k.order)
}

// giveAll ends early where the worker does: its keeper reads that elsewhere. The descriptors are the entries' own: none is
// released before the worker has got it.
func giveAll(w wire, all []message) {
	for _, m := range all {
		if w.say(m) != nil {
			return
		}
	}
}

func hearAll(w wire, to chan<- message, done <-chan struct{}) {
	defer close(to)
	b := make([]byte, longest)
	for {
		m, err := w.hear(b)
		if err != nil && !errors.Is(err, errLost) {
			return // it has ended, or is about to: it says nothing that is no message
		}
		select {
		case to <- m:
		case <-done:
			closeAll(m.fds)
			return
		}
	}
}

// watch does what the worker says until it ends.
func (k *keeper) watch(ctx context.Context, w wire, p *os.Process, heard <-chan message, exited <-chan error) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	left, told, killed, replace := starting, ctx.Done(), error(nil), k.Replace
	if k.taken != nil {
		left = trying
	}
	var late <-chan time.Time
	for {
		select {
		case m, ok := <-heard:
			if !ok {
				heard = nil // it is about to exit
				continue
			}
			k.take(w, m)
			if k.taken == nil || k.ready { // beats of another program say nothing of whether it comes to work
				left = silence
			}
		case err := <-exited:
			if heard != nil {
				k.takeRest(w, heard)
			}
			switch {
			case k.failed != nil: // it may be heard behind the end that it explains
				return k.failed
			case killed != nil:
				return killed
			}
			return err
		case <-tick.C:
			if left--; left == 0 && late == nil {
				killed = errors.New("it said nothing for a second")
				p.Kill()
			}
		case <-replace:
			if err := k.takeProgram(); err != nil {
				k.Log.Error("the worker is not replaced", "why", err)
				continue
			}
			killed, replace = errReplaced, nil
			p.Kill()
		case <-told:
			told, late, replace = nil, time.After(ending), nil
			_ = w.SetWriteDeadline(time.Now().Add(ending)) // that of the last answer is over, or about to be
			go w.say(message{Do: end})                     //nolint:errcheck // who is gone need not hear it
		case <-late:
			killed = &overError{fmt.Errorf("the worker did not end within %v, and was killed", ending)}
			p.Kill()
		}
	}
}

// takeRest does what a worker has said before it died: the kernel has it still.
func (k *keeper) takeRest(w wire, heard <-chan message) {
	for m := range heard { // until the end of the worker's socket, which its death has closed
		k.take(w, m)
	}
}

func (k *keeper) take(w wire, m message) {
	switch e := k.entries[m.Key]; m.Do {
	case hold:
		k.put(m.Key, m.Value, m.fds)
		m.fds = nil
	case note:
		if e != nil {
			e.value = m.Value
		}
	case release:
		k.drop(m.Key)
	case failed:
		k.failed = &overError{errors.New(string(m.Value))}
	case ready:
		if !k.worked && k.Ready != nil {
			k.Ready()
		}
		k.prove()
		k.fails, k.wasted = 0, 0
		if k.worked, k.ready = true, true; !k.died.IsZero() {
			k.Log.Info("another worker has taken over", "after", time.Since(k.died).Round(time.Millisecond))
			k.died = time.Time{}
		}
	case beat:
		_ = w.SetWriteDeadline(time.Now().Add(beatEvery)) // a worker that reads nothing is about to be replaced
		_ = w.say(message{Do: beat})
	}
	closeAll(m.fds)
}
