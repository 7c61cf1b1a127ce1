package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/core/serving"
)

// A proc is a directory like /proc.
type proc string

// is writes what a thread is seen as: its state, and nanoseconds on a processor and of waiting for one.
func (p proc) is(t *testing.T, pid, tid, parent int, state string, ran, waited time.Duration) {
	t.Helper()
	dir := filepath.Join(string(p), strconv.Itoa(pid), "task", strconv.Itoa(tid))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"stat":      fmt.Sprintf("%d (a (b) S 1) %s %d 7 7 0 -1 4194560 0", tid, state, parent), // a program may be called so
		"schedstat": fmt.Sprintf("%d %d 12\n", ran.Nanoseconds(), waited.Nanoseconds()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const look = 50 * time.Millisecond

// TestATimeWithoutAProcessorIsRead from what a thread waited, and while it waits, from what it did not run.
func TestATimeWithoutAProcessorIsRead(t *testing.T) {
	const ms = time.Millisecond
	before := thread{ran: 10 * time.Second, waited: 3 * time.Second}
	for name, c := range map[string]struct {
		ran, waited time.Duration // since
		state       byte
		want        time.Duration
	}{
		"it slept":                              {0, 0, 'S', 0},
		"it ran all the time":                   {50 * ms, 0, 'R', 0},
		"it waited, ran and sleeps":             {5 * ms, 30 * ms, 'S', 30 * ms},
		"it waits since the last look":          {0, 0, 'R', 50 * ms}, // the kernel counts that later
		"it ran, and waits":                     {20 * ms, 0, 'R', 30 * ms},
		"it waited, and waits again":            {10 * ms, 35 * ms, 'R', 40 * ms},
		"what it waited before the look counts": {0, 400 * ms, 'S', 50 * ms}, // told late, and no longer than the look
		"it is stopped":                         {0, 0, 'T', 0},
		"it waits for a disk":                   {0, 0, 'D', 0},
		"its number is another thread's":        {-9 * time.Second, -2 * time.Second, 'S', 0},
	} {
		now := thread{before.ran + c.ran, before.waited + c.waited}
		if got := starved(before, now, c.state, look); got != c.want {
			t.Errorf("%s: starved for %v, want %v", name, got, c.want)
		}
	}
}

// TestOfAProgramTheThreadThatWaitedMostCounts, between two looks.
func TestOfAProgramTheThreadThatWaitedMostCounts(t *testing.T) {
	p, at := newPrograms(func(f func()) { f() }), proc(t.TempDir())
	p.proc = string(at)
	p.holders[5] = []int{100}
	see := func() serving.Program {
		looks := map[uint64]*listenerLook{1: {inode: 5}}
		p.watch(looks, look)
		p.endLook()
		return looks[1].Program
	}
	at.is(t, 100, 100, 1, "S", time.Second, time.Second)
	at.is(t, 100, 101, 1, "S", time.Second, time.Second)
	if got := see(); got != (serving.Program{Known: true}) {
		t.Errorf("at the first look: %+v, want nothing but that it is known", got)
	}
	at.is(t, 100, 100, 1, "S", time.Second, time.Second+10*time.Millisecond)
	at.is(t, 100, 101, 1, "R", time.Second+15*time.Millisecond, time.Second)
	if got := see(); got != (serving.Program{Known: true, Starved: 35 * time.Millisecond}) {
		t.Errorf("one thread waited for 10 ms, one waits for 35 of 50 ms: %+v", got)
	}
	os.Remove(filepath.Join(string(at), "100/task/101/schedstat")) // a kernel that does not tell
	at.is(t, 100, 100, 1, "S", time.Second, time.Second+10*time.Millisecond)
	if got := see(); got != (serving.Program{Known: true}) {
		t.Errorf("it told nothing: %+v, want that the clock counts", got)
	}
	os.RemoveAll(filepath.Join(string(at), "100"))
	if got := see(); got != (serving.Program{}) {
		t.Errorf("it has ended: %+v, want nothing known", got)
	}
}

// TestAProgramIsStoppedWhereNoneThatMayAcceptRuns: a master that waits for its workers accepts nothing.
func TestAProgramIsStoppedWhereNoneThatMayAcceptRuns(t *testing.T) {
	for name, c := range map[string]struct {
		states        string // of 10, the parent of the others, and of 11, 12
		whole, partly bool
	}{
		"one process":                                  {"S", false, false},
		"one process, stopped":                         {"T", true, false},
		"one process, dead and not waited for":         {"Z", true, false},
		"a master and workers":                         {"SSR", false, false},
		"one worker of two is stopped":                 {"STS", false, true},
		"all workers are stopped, their master is not": {"STt", true, false},
		"the master is stopped, who may accept":        {"TSS", true, false},
	} {
		p, at := newPrograms(nil), proc(t.TempDir())
		p.proc = string(at)
		var pids []int
		for i, state := range c.states {
			parent := 10
			if i == 0 {
				parent = 1
			}
			at.is(t, 10+i, 10+i, parent, string(state), 0, 0)
			pids = append(pids, 10+i)
		}
		got := p.together(pids, look)
		if want := (serving.Program{Known: true, Stopped: c.whole, Partly: c.partly}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestThisKernelTellsOfProcesses what is read here of them: of this process, which ran, and of a child that is stopped.
func TestThisKernelTellsOfProcesses(t *testing.T) {
	self := filepath.Join("/proc/self/task", strconv.Itoa(os.Getpid()))
	if state, parent := statOf(self); !strings.ContainsRune("RSD", rune(state)) || parent != os.Getppid() {
		t.Errorf("this process is %q, a child of %d, want R, S or D and %d", state, parent, os.Getppid())
	}
	if _, err := os.Stat(filepath.Join(self, "schedstat")); err != nil {
		t.Skip("this kernel has no schedstat")
	}
	if now, ok := schedstat(self); !ok || now.ran <= 0 {
		t.Errorf("this process ran for %v, %v", now.ran, ok)
	}
	child, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Kill()
	child.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(child.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it did not stop: %v %v", status, err)
	}
	p := newPrograms(nil)
	if got := p.together([]int{child.Pid}, look); got != (serving.Program{Known: true, Stopped: true}) {
		t.Errorf("a child that is stopped: %+v", got)
	}
}
