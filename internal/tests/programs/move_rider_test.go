package programs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A rider is an unmodified program on c1 with a connection that stays open while hosts move.
type rider struct {
	name   string
	pid    int                // whose flows are its
	links  int                // how many it has
	step   int64              // by so much it gets on if it is alive
	count  func() int64       // how far it has come
	want   func(n int64)      // if not nil: it may come that far
	failed func() error       // what went wrong meanwhile
	ended  func() bool        // it is at its end
	finish func(t *testing.T) // brings it to its end and judges what it did
	rides  int                // moves that it was there for, from before to after
	stable []string           // its flows at first
	since  int                // hops of c1 before they were opened
}

// A dialogue is a rider that answers each line that it is given with one.
type dialogue struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Scanner
	stderr  bytes.Buffer // to be read after the end of the process
	answers atomic.Int64
	broken  atomic.Pointer[error]
	stop    chan struct{}
	stopped chan struct{}
}

func (j *journey) dialogue(argv ...string) *dialogue {
	j.t.Helper()
	d := &dialogue{cmd: exec.Command(argv[0], argv[1:]...), stop: make(chan struct{}), stopped: make(chan struct{})}
	in, err := d.cmd.StdinPipe()
	if err != nil {
		j.t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		j.t.Fatal(err)
	}
	d.in, d.lines, d.cmd.Stderr = in, bufio.NewScanner(out), &d.stderr
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := j.net.lab.Start("c1", d.cmd); err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { d.cmd.Process.Kill() })
	return d
}

// say gives a line and returns the answer.
func (d *dialogue) say(line string) (string, error) {
	if _, err := fmt.Fprintln(d.in, line); err != nil {
		return "", d.end(fmt.Errorf("%q could not be said: %w", line, err))
	}
	if !d.lines.Scan() {
		return "", d.end(fmt.Errorf("no answer to %q: %w", line, cmpErr(d.lines.Err(), io.EOF)))
	}
	return d.lines.Text(), nil
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// end adds how the program ended.
func (d *dialogue) end(err error) error {
	exit := d.cmd.Wait()
	return fmt.Errorf("%w; it ended: %v: %s", err, exit, d.stderr.String())
}

// talk asks on and on until it is stopped; each answer must be the right one.
func (d *dialogue) talk(line, want func(i int64) string) {
	defer close(d.stopped)
	for i := int64(1); ; i++ {
		select {
		case <-d.stop:
			return
		default:
		}
		got, err := d.say(line(i))
		if err == nil && got != want(i) {
			err = fmt.Errorf("answer %d is %q, want %q", i, got, want(i))
		}
		if err != nil {
			d.broken.Store(&err)
			return
		}
		d.answers.Store(i)
		time.Sleep(5 * time.Millisecond) // leave something of the machine to others
	}
}

// hush ends talk and returns how many answers there were.
func (d *dialogue) hush(t *testing.T) int64 {
	t.Helper()
	close(d.stop)
	nstest.Receive(t, "the program that does not answer", also(d.stopped))
	if err := d.broken.Load(); err != nil {
		t.Fatal(*err)
	}
	return d.answers.Load()
}

// also is a channel that gets a value when another one is closed.
func also(closed chan struct{}) chan struct{} {
	c := make(chan struct{}, 1)
	go func() { <-closed; c <- struct{}{} }()
	return c
}

// must says a line and fails if the answer is another one.
func (d *dialogue) must(t *testing.T, line, want string) {
	t.Helper()
	got, err := d.say(line)
	if err != nil || want != "" && got != want {
		t.Fatalf("%q is answered by %q, want %q (%v)", line, got, want, err)
	}
}

// bye ends the program, which must have been content.
func (d *dialogue) bye(t *testing.T) {
	t.Helper()
	d.in.Close()
	if d.lines.Scan() {
		t.Errorf("it says more than it was asked: %q", d.lines.Text())
	}
	if err := d.cmd.Wait(); err != nil || strings.TrimSpace(d.stderr.String()) != "" {
		t.Errorf("it ended with %v and said: %s", err, d.stderr.String())
	}
}

// rider makes a dialogue a rider.
func (d *dialogue) rider(name string, line, want func(int64) string, finish func(t *testing.T, answers int64)) *rider {
	go d.talk(line, want)
	return &rider{
		name: name, pid: d.cmd.Process.Pid, links: 1, step: 5, count: d.answers.Load,
		failed: func() error {
			if err := d.broken.Load(); err != nil {
				return *err
			}
			return nil
		},
		ended: func() bool { return false },
		finish: func(t *testing.T) {
			n := d.hush(t)
			finish(t, n)
			d.bye(t)
			t.Logf("%d answers", n)
		},
	}
}
