package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/cli/output"
)

// waiting are command lines that wait: for what FIFO or standard input (-) brings, or for a daemon at SOCK that never
// answers. After => stands the exit code when they are asked to end, where it is not 1.
const waiting = `
apply -f -
apply -f FIFO
diff -f FIFO
diff -f -
login --token - 192.0.2.1:23728
join --token - 192.0.2.1:23728
service delegate web --key FIFO --host s1
service create web --key FIFO --api unix:SOCK
state show FIFO
state restore FIFO --data .
hostd --config FIFO --check
routerd --config FIFO --check
controld --config FIFO --check
gateway --config FIFO --check
controld --check --etcd https://192.0.2.1:2379 --etcd-ca FIFO
lab check FIFO
lab plot FIFO
guest hook

status --api unix:SOCK
service ls --api unix:SOCK
service create web --api unix:SOCK
service rm web --api unix:SOCK
service weight web s1=1 s2=2 --api unix:SOCK
service drain web s1 --follow --api unix:SOCK
service access web --allow any --api unix:SOCK
service show web --api unix:SOCK
host ls --api unix:SOCK
host drain s1 --follow --api unix:SOCK
host status --api unix:SOCK
router ls --api unix:SOCK
flow ls --api unix:SOCK
flow show 9f3c1b2a44d0e871 --api unix:SOCK
flow who fd5d::1 --api unix:SOCK
flow move 9f3c1b2a44d0e871 --to eth1 --api unix:SOCK
explain web --api unix:SOCK
capture web --api unix:SOCK
events -f --api unix:SOCK => 0
export --api unix:SOCK
net show --api unix:SOCK
net path a b --api unix:SOCK
net switch ls --api unix:SOCK
token ls --api unix:SOCK
token create --role host --api unix:SOCK
admin ls --api unix:SOCK
controller ls --api unix:SOCK
upgrade --api unix:SOCK
guest ls --api unix:SOCK
guest add x --netns /proc/self/ns/net --api unix:SOCK
state backup - --api unix:SOCK
state show --api unix:SOCK
gateway status --socket SOCK
gateway drain --follow --socket SOCK
rotate --socket SOCK
run --service web --socket SOCK -- true
`

// asks is a daemon's socket that takes connections and says nothing.
func asks(t *testing.T) (path string, came <-chan struct{}) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") // a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				if _, err := c.Read(make([]byte, 1)); err == nil { // no mere look whether somebody is there
					select {
					case asked <- struct{}{}:
					default:
					}
				}
			}()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return path, asked
}

func TestWhatWaitsEndsWhenItIsAskedTo(t *testing.T) {
	for line := range strings.Lines(waiting) {
		typed, code, _ := strings.Cut(strings.TrimSpace(line), " => ")
		if typed == "" {
			continue
		}
		for _, with := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(fmt.Sprint(typed, " ", with), func(t *testing.T) {
				t.Parallel()
				interrupts(t, typed, output.OrElse(code, "1"), with)
			})
		}
	}
}

func interrupts(t *testing.T, typed, want string, with syscall.Signal) {
	dir := t.TempDir()
	fifo, keep := filepath.Join(dir, "FIFO"), filepath.Join(dir, "KEEP")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.Mkdir(keep, 0o700)); err != nil {
		t.Fatal(err)
	}
	socket, asked := asks(t)
	typed = strings.ReplaceAll(strings.ReplaceAll(typed, "FIFO", fifo), "SOCK", socket)
	cmd := exec.Command("/proc/self/exe", strings.Fields(typed)...)
	cmd.Args[0], cmd.Dir = "scaffold", dir
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+keep, "HOME="+keep)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	waits := func() bool {
		switch {
		case strings.Contains(typed, fifo):
			w, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0) // only with a reader, whom this holds on
			if err == nil {
				t.Cleanup(func() { w.Close() })
			}
			return err == nil
		case strings.Contains(typed, socket):
			return len(asked) > 0
		}
		return readsStdin(cmd.Process.Pid)
	}
	for deadline := time.Now().Add(20 * time.Second); !waits(); time.Sleep(2 * time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatalf("it ended before it was asked to, with %v: %s", err, said.String())
		default:
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatalf("it waits for nothing: %s", said.String())
		}
	}
	cmd.Process.Signal(with) // it runs: nobody else waits for it
	select {
	case <-ended:
		if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != want || want == "1" && !strings.Contains(said.String(), "interrupted") {
			t.Errorf("%v: exit code %s, %q; want %s, and interrupted", with, got, said.String(), want)
		}
	case <-time.After(20 * time.Second):
		cmd.Process.Kill()
		t.Errorf("%v is ignored: %s", with, said.String())
	}
}

// readsStdin reports whether a thread of the process is in read(0, ...).
func readsStdin(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid)) // a process that ended has none
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		if strings.HasPrefix(string(text), fmt.Sprintf("%d 0x0 ", unix.SYS_READ)) {
			return true
		}
	}
	return false
}
