package nstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Deadline is how long the helpers here wait for an event before the test fails. It only ends a test
// that hangs: nothing is ever waited for longer than it takes. Where PatienceEnv says so it is as many times as long.
var Deadline = patience(os.Getenv(PatienceEnv)) * 30 * time.Second

// PatienceEnv is how many times slower than others the machine is that runs the tests: one that is emulated.
const PatienceEnv = "SCAFFOLD_TEST_PATIENCE"

func patience(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 1
	}
	return time.Duration(max(1, n))
}

// Run runs a program in the namespace to its end and returns what it printed; failure ends the test.
func (n *NS) Run(t testing.TB, argv ...string) string {
	t.Helper()
	out, err := n.Try(argv...)
	if err != nil {
		t.Fatalf("%s: %s: %v\n%s", n.Name, strings.Join(argv, " "), err, out)
	}
	return out
}

// Try runs a program in the namespace to its end; the caller judges how it ended.
func (n *NS) Try(argv ...string) (out string, err error) {
	return TryBy(n.starter, exec.Command(argv[0], argv[1:]...))
}

// A Starter starts a prepared command somewhere: in a namespace, in a node of a lab.
type Starter func(cmd *exec.Cmd) error

// TryBy runs a command to its end where start starts it; the caller judges how it ended.
func TryBy(start Starter, cmd *exec.Cmd) (out string, err error) {
	p, err := begin("", start, cmd)
	if err != nil {
		return "", err
	}
	err = p.Wait()
	return p.Output(), err
}

// StartBy starts a command where start starts it; it is killed with its process group at the end of
// the test. Name is for messages.
func StartBy(t testing.TB, name string, start Starter, cmd *exec.Cmd) *Proc {
	t.Helper()
	p, err := begin(name+": "+cmd.String(), start, cmd)
	if err != nil {
		t.Fatalf("%s: start %s: %v", name, cmd, err)
	}
	t.Cleanup(p.Kill)
	return p
}

// Start starts a program in the namespace. It gets a process group of its own, which is killed at the
// end of the test.
func (n *NS) Start(t testing.TB, argv ...string) *Proc {
	t.Helper()
	return n.StartCmd(t, exec.Command(argv[0], argv[1:]...))
}

// StartUntil is Start that returns when the program has made all the files; its end before, or the deadline, ends the
// test.
func (n *NS) StartUntil(t testing.TB, files []string, argv ...string) *Proc {
	t.Helper()
	p := n.Start(t, argv...)
	Wait(t, p.name, func() error {
		select {
		case <-p.done:
			t.Fatalf("%s ended: %v. It printed:\n%s", p.name, p.err, p.Output())
		default:
		}
		for _, file := range files {
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("%w; it printed:\n%s", err, p.Output())
			}
		}
		return nil
	})
	return p
}

// StartCmd is Start for a prepared command; its output goes to the Proc.
func (n *NS) StartCmd(t testing.TB, cmd *exec.Cmd) *Proc {
	t.Helper()
	return StartBy(t, n.Name, n.starter, cmd)
}

// starter starts a command in the namespace: it inherits that of the thread that forks.
func (n *NS) starter(cmd *exec.Cmd) (err error) {
	n.Do(func() { err = cmd.Start() })
	return err
}

func begin(name string, start Starter, cmd *exec.Cmd) (*Proc, error) {
	p := &Proc{cmd: cmd, name: name, done: make(chan struct{})}
	p.news = sync.NewCond(&p.mu)
	cmd.Stdout, cmd.Stderr = p, p
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.WaitDelay = time.Second // a daemon that it left behind may hold the pipe
	if err := start(cmd); err != nil {
		return nil, err
	}
	go p.reap()
	return p, nil
}

// A Proc is a program that runs in a namespace; its output is kept.
type Proc struct {
	cmd  *exec.Cmd
	name string
	done chan struct{}
	err  error // valid after done

	mu    sync.Mutex
	news  *sync.Cond // output or end
	out   bytes.Buffer
	ended bool
}

// Write takes what the program prints.
func (p *Proc) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.news.Broadcast()
	return p.out.Write(b)
}

func (p *Proc) reap() {
	p.err = p.cmd.Wait()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.news.Broadcast()
	close(p.done)
}

// PID is the process number.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Output is what the program printed so far.
func (p *Proc) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// Wait waits for the end of the program. One that still runs after ten times the deadline is told as an error, so that no
// test waits until all tests are ended, and nobody learns for what.
func (p *Proc) Wait() error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(10 * Deadline):
		return fmt.Errorf("%s still runs after %v; it printed:\n%s", p.name, 10*Deadline, p.Output())
	}
}

// WaitEnd waits for the end of the program, by whatever way; the deadline ends the test.
func (p *Proc) WaitEnd(t testing.TB) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(Deadline):
		t.Fatalf("%s still runs after %v: /proc/%d/stack, gdb -p %[3]d. It printed:\n%[4]s", p.name, Deadline, p.PID(), p.Output())
	}
}

// Done is closed when the program has ended.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the program alone.
func (p *Proc) Signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// Children are the processes that the program has started and that are there.
func (p *Proc) Children() (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.PID()))
	for _, list := range lists {
		b, _ := os.ReadFile(list) // a thread that has ended has none
		for _, text := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(text); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// SignalAll sends a signal to the program and then to those that it has started. After SIGSTOP all of them stand still: kill(2)
// only asks for that, and one thread may sleep until it is its turn to tell the others, which go on meanwhile.
func (p *Proc) SignalAll(s syscall.Signal) {
	p.Signal(s)
	all := p.Children()
	for _, pid := range all {
		syscall.Kill(pid, s)
	}
	if s == syscall.SIGSTOP {
		for _, pid := range append(all, p.PID()) {
			for end := time.Now().Add(Deadline); !stands(pid) && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// stands reports whether each thread of a process is stopped, or the process is gone.
func stands(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range threads {
		text, err := os.ReadFile(path)
		_, state, _ := strings.Cut(string(text), ") ") // behind a name that may have anything in it
		if err == nil && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Kill ends the program and its process group by SIGKILL and waits.
func (p *Proc) Kill() {
	select {
	case <-p.done: // its number may be another's by now
	default:
		syscall.Kill(-p.PID(), syscall.SIGKILL)
		<-p.done
	}
}

// WaitFor waits until the output holds text; the program's end or the deadline ends the test.
func (p *Proc) WaitFor(t testing.TB, text string) {
	t.Helper()
	timer := time.AfterFunc(Deadline, p.news.Broadcast)
	defer timer.Stop()
	end := time.Now().Add(Deadline)
	p.mu.Lock()
	defer p.mu.Unlock()
	for !strings.Contains(p.out.String(), text) {
		if p.ended || !time.Now().Before(end) {
			t.Fatalf("%s: no %q in its output (ended: %v). It printed:\n%s", p.name, text, p.ended, p.out.String())
		}
		p.news.Wait()
	}
}
