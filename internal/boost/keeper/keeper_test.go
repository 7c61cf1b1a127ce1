package keeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/safety"
)

// within is how long a test waits for what has to happen.
const within = 30 * time.Second

// The test's binary is a keeper or a worker where these say so: what a worker is to do, in words.
const (
	keeperEnv = "SCAFFOLD_TEST_KEEPER"
	workEnv   = "SCAFFOLD_TEST_WORK"
	// The program that takes over where the keeper is told to.
	programEnv = "SCAFFOLD_TEST_PROGRAM"
)

func TestMain(m *testing.M) {
	switch {
	case IsWorker():
		work(os.Getenv(workEnv))
	case os.Getenv(keeperEnv) != "":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		replace := make(chan struct{})
		came := make(chan os.Signal, 1)
		signal.Notify(came, syscall.SIGUSR2)
		go func() {
			for range came {
				replace <- struct{}{}
			}
		}()
		err := Run(ctx, Config{Log: quiet(), Ready: func() { fmt.Println("ready") }, Replace: replace, Program: os.Getenv(programEnv)})
		fmt.Println("ended:", err)
	default:
		os.Exit(m.Run())
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

// work is a worker: it says on standard output who it is and what it has found, and does what it is told to.
func work(what string) {
	if what == "crash" {
		os.Exit(7)
	}
	s, err := Join(context.Background())
	if err != nil {
		fmt.Println("join:", err)
		os.Exit(1)
	}
	if what == "fail" {
		s.Failed(errors.New("port eth9: there is none"))
		return
	}
	if path, ok := strings.CutPrefix(what, "fail where there is "); ok && os.Remove(path) == nil {
		s.Failed(errors.New("port eth9: there is none"))
		return
	}
	if what == "hang" { // it lives, and does not come to work
		<-s.Context().Done()
		return
	}
	text := ""
	for _, f := range s.Found() {
		text += fmt.Sprintf(" %s=%s/%d", f.Key, f.Value, len(f.FDs))
		if b, err := ReadText(f.FDs[0]); err == nil && len(b) > 0 {
			text += "/" + string(b)
		}
	}
	if len(s.Found()) == 0 {
		for _, key := range []string{"a", "b", "c"} {
			fd, _ := Text([]byte("text of " + key))
			if err := s.Hold(key, []byte("1"), fd); err != nil {
				fmt.Println(err)
			}
		}
		s.Note("a", []byte("2"))
		s.Release("b")
	}
	s.Ready()
	fmt.Printf("worker %d found%s%s\n", os.Getpid(), text, os.Getenv("SCAFFOLD_TEST_VERSION"))
	<-s.Context().Done()
	fmt.Println("worker ends:", context.Cause(s.Context()))
	s.Close()
}

// A running keeper, and what it and its workers say.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
}

func run(t *testing.T, work string) *running {
	t.Helper()
	r := &running{t: t, cmd: exec.Command("/proc/self/exe"), lines: make(chan string, 100)}
	r.cmd.Env = append(os.Environ(), keeperEnv+"=1", workEnv+"="+work)
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait() // it was killed, or has been waited for: that is no error here
	})
	return r
}

// says waits for a line that contains a text.
func (r *running) says(text string) string {
	r.t.Helper()
	late := time.After(within)
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.t.Fatalf("it has ended, and did not say %q", text)
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-late:
			r.t.Fatalf("waited in vain for %q", text)
		}
	}
}

// worker waits for the next worker, and returns its number and what it has found.
func (r *running) worker() (pid int, found string) {
	r.t.Helper()
	line := r.says("worker ")
	if _, err := fmt.Sscanf(line, "worker %d found", &pid); err != nil {
		r.t.Fatalf("%q: %v", line, err)
	}
	_, found, _ = strings.Cut(line, "found")
	return pid, found
}

const kept = " a=2/1/text of a c=1/1/text of c"

func TestTheNextWorkerHasWhatTheOneBeforeHad(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP, "ended": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			r := run(t, "")
			pid, found := r.worker()
			if found != "" {
				t.Errorf("the first worker has found%s", found)
			}
			for range 2 {
				syscall.Kill(pid, end)
				next, found := r.worker()
				if next == pid || found != kept {
					t.Errorf("worker %d after %d found%s, want%s", next, pid, found, kept)
				}
				pid = next
			}
		})
	}
}

func TestTheWorkerEndsWithItsKeeper(t *testing.T) {
	safety.Test(t, safety.Trace)
	t.Run("in order", func(t *testing.T) {
		r := run(t, "")
		r.worker()
		r.cmd.Process.Signal(syscall.SIGTERM)
		r.says("worker ends: " + errEnd.Error())
		r.says("ended: <nil>")
	})
	t.Run("killed", func(t *testing.T) {
		r := run(t, "")
		pid, _ := r.worker()
		syscall.Kill(pid, syscall.SIGSTOP) // neither can it hear of it
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		r.cmd.Process.Kill()
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n != 1 || err != nil {
				t.Errorf("worker %d is still there: %v", pid, err)
			}
			return
		}
	})
}

func TestAFirstWorkerThatCannotBeginEndsAll(t *testing.T) {
	for work, want := range map[string]string{"fail": "ended: port eth9: there is none", "crash": "ended: the worker ended before it was ready: exit status 7"} {
		run(t, work).says(want)
	}
}

// A keeper that is frozen, or gone without a word, answers no beat.
func TestAWorkerWithoutAKeeperEnds(t *testing.T) {
	for _, gone := range []bool{false, true} {
		w, theirs, err := pair()
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Dup(int(theirs.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		w.say(message{Do: begin})
		s, err := join(t.Context(), fd, 3)
		if err != nil {
			t.Fatal(err)
		}
		if gone {
			w.Close()
		}
		select {
		case <-s.Context().Done():
		case <-time.After(within):
			t.Fatal("it goes on")
		}
		if err := context.Cause(s.Context()); !errors.Is(err, ErrGone) {
			t.Errorf("it ends because of %v", err)
		}
		s.Close()
		w.Close()
	}
}

// What comes without its descriptors is told apart from what had none, and no descriptor of a message that is none stays.
func TestMessagesAreReadWholeOrNotAtAll(t *testing.T) {
	a, file, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	b, err := wireOf(fd)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Text([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer CloseText(text)
	room := make([]byte, longest)
	if err := a.say(message{Do: hold, Key: "k", Value: []byte{0, 255}, fds: []int{text, text}}); err != nil {
		t.Fatal(err)
	}
	m, err := b.hear(room)
	if err != nil || m.Do != hold || m.Key != "k" || string(m.Value) != "\x00\xff" || len(m.fds) != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	closeAll(m.fds)
	if err := a.say(message{Do: hold, Value: make([]byte, longest)}); err == nil {
		t.Error("a message that is too long was sent")
	}
	if _, _, err := a.WriteMsgUnix([]byte("no message"), unix.UnixRights(text), nil); err != nil {
		t.Fatal(err)
	}
	before := descriptorsOf(t)
	if m, err := b.hear(room); err == nil {
		t.Errorf("%+v", m)
	}
	if now := descriptorsOf(t); now != before {
		t.Errorf("%d descriptors, %d before", now, before)
	}
	a.Close()
	if _, err := b.hear(room); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	b.Close()
}

func descriptorsOf(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A worker makes room for one of another program, which has all that it had; a program that does not work costs a moment, and
// one that is not there nothing.
func TestAnotherProgramTakesOver(t *testing.T) {
	safety.Test(t, safety.Bytes)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "next")
	t.Setenv(programEnv, program)
	r := run(t, "")
	first, _ := r.worker()
	put := func(does string) {
		t.Helper()
		os.Remove(program)
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := first
	for _, c := range []struct{ does, want string }{
		{"exit 7", kept}, // this program again
		{"SCAFFOLD_TEST_VERSION=' v2' exec " + self, kept + " v2"},
		{"exit 7", kept + " v2"}, // the last that has worked, not the keeper's own
		{workEnv + "=fail exec " + self, kept + " v2"},
		{workEnv + "=hang exec " + self, kept + " v2"},
		{"SCAFFOLD_TEST_VERSION=' v3' exec " + self, kept + " v3"},
	} {
		put(c.does)
		r.cmd.Process.Signal(syscall.SIGUSR2)
		pid, found := r.worker()
		if pid == before || found != c.want {
			t.Errorf("%q: worker %d after %d found%s, want%s", c.does, pid, before, found, c.want)
		}
		before = pid
	}
	os.Remove(program)
	r.cmd.Process.Signal(syscall.SIGUSR2) // nothing is there: the worker stays
	syscall.Kill(before, syscall.SIGKILL)
	if pid, found := r.worker(); pid == before || found != kept+" v3" {
		t.Errorf("worker %d after %d found%s: it is to be of the program that works", pid, before, found)
	}
}

// A program that has worked and does so no more, as where a machine has changed under it, gives way to the keeper's own.
func TestAProgramThatWorksNoMoreGivesWay(t *testing.T) {
	safety.Test(t, safety.Bytes)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, once := filepath.Join(dir, "next"), filepath.Join(dir, "once")
	does := "[ -e " + once + " ] && exit 7; : >" + once + "; SCAFFOLD_TEST_VERSION=' v2' exec " + self
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(programEnv, program)
	r := run(t, "")
	r.worker()
	r.cmd.Process.Signal(syscall.SIGUSR2)
	pid, found := r.worker()
	if found != kept+" v2" {
		t.Fatalf("worker %d found%s, want%s", pid, found, kept+" v2")
	}
	syscall.Kill(pid, syscall.SIGKILL)
	if _, found := r.worker(); found != kept {
		t.Errorf("the next worker found%s, want%s, by the keeper's own program", found, kept)
	}
}

// A program that has worked and fails once where another of its workers begins has only had bad luck: the next one is of the same
// program, whatever it says of its failure.
func TestAProgramThatHasWorkedMayFailOnce(t *testing.T) {
	safety.Test(t, safety.Bytes)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, fails := filepath.Join(dir, "next"), filepath.Join(dir, "fails")
	does := "if [ -e " + fails + " ]; then how=$(cat " + fails + "); rm " + fails + "; " + workEnv + "=$how exec " + self + "; fi; SCAFFOLD_TEST_VERSION=' v2' exec " + self
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(programEnv, program)
	r := run(t, "")
	r.worker()
	r.cmd.Process.Signal(syscall.SIGUSR2)
	pid, found := r.worker()
	for _, how := range []string{"crash", "fail", "crash"} { // in a row they are not: each has one that works behind it
		if found != kept+" v2" {
			t.Fatalf("worker %d found%s, want%s", pid, found, kept+" v2")
		}
		if err := os.WriteFile(fails, []byte(how), 0o644); err != nil {
			t.Fatal(err)
		}
		syscall.Kill(pid, syscall.SIGKILL)
		pid, found = r.worker()
	}
	if found != kept+" v2" {
		t.Errorf("worker %d found%s, want%s", pid, found, kept+" v2")
	}
}

// The keeper's own program may say once that it cannot work, too, where it has: what is carried goes on.
func TestTheKeepersOwnProgramMayFailOnce(t *testing.T) {
	safety.Test(t, safety.Bytes)
	fails := filepath.Join(t.TempDir(), "fails")
	r := run(t, "fail where there is "+fails)
	pid, _ := r.worker()
	if err := os.WriteFile(fails, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	if _, found := r.worker(); found != kept {
		t.Errorf("the next worker found%s, want%s", found, kept)
	}
}

// What a worker says of itself is read behind its end, perhaps, when another program was taken already: it is a word for its
// own program, not for that one.
func TestAWorkersWordIsForItsOwnProgram(t *testing.T) {
	dir := t.TempDir()
	k := &keeper{Config: Config{Program: filepath.Join(dir, "next"), Log: slog.New(slog.DiscardHandler)}, entries: map[string]*entry{}}
	defer func() { k.turn(); k.forgetPrograms() }()
	take := func() *os.File {
		if err := os.WriteFile(k.Program, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := k.takeProgram(); err != nil {
			t.Fatal(err)
		}
		return k.next
	}
	first := take()
	k.turn()
	take()
	k.take(wire{}, message{Do: ready})
	if k.turn(); k.proven != first {
		t.Error("the program that nobody has tried yet counts as one that works")
	}
	if k.fallBack(); k.taken != first {
		t.Error("where it does not work it does not make room for the one that did")
	}
}
