package bench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The peer, and how pip is told.
const (
	osKen        = "os-ken 4.2.2"
	osKenPackage = "os-ken==4.2.2"
)

//go:embed reactive.py
var reactivePeer []byte

// reactiveReady is the line that a controller prints when a switch has what it is to have.
const reactiveReady = "ready"

// A rival is a controller: a process in the switch's namespace that is reached by TCP there.
type rival struct {
	name   string
	cmd    *exec.Cmd
	target string
	lines  chan string
	said   bytes.Buffer // its standard error; read after close
}

// startRival starts a controller, which listens at that port of 127.0.0.1.
func startRival(n *reactiveNet, name string, port int, argv ...string) (*rival, error) {
	r := &rival{name: name, cmd: exec.Command(argv[0], argv[1:]...), target: fmt.Sprintf("tcp:127.0.0.1:%d", port), lines: make(chan string, 64)}
	r.cmd.Stderr = &r.said
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.sw.Start(r.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { // ends with the process
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	return r, nil
}

func (r *rival) close() {
	r.cmd.Process.Kill() // it may be gone
	for range r.lines {
	}
	r.cmd.Wait() //nolint:errcheck // it was killed
}

// rivalTime bounds how long a switch may take to a new controller: it tries again every 8 s at the latest.
const rivalTime = 30 * time.Second

// await waits until the switch obeys.
func (r *rival) await(ctx context.Context) error {
	for limit := time.After(rivalTime); ; {
		select {
		case line, ok := <-r.lines:
			if line == reactiveReady {
				return nil
			}
			if !ok {
				r.close()
				return fmt.Errorf("%s has ended: %s", r.name, tail(r.said.Bytes()))
			}
		case <-limit:
			return fmt.Errorf("%s: the switch did not come to it within %v", r.name, rivalTime)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tail is the end of what a program said, in one line.
func tail(b []byte) string { return strings.Join(strings.Fields(string(b[max(0, len(b)-600):])), " ") }

// A MissingPeerError says that there is no os-ken to compare with.
type MissingPeerError struct{ Err error }

func (e *MissingPeerError) Error() string {
	return fmt.Sprintf("no %s to compare with: %v. Let this machine reach PyPI and install python3 with venv; or make a venv where it can be reached, `pip install %s` there, and give its python with --python", osKen, e.Err, osKenPackage)
}

func (e *MissingPeerError) Unwrap() error { return e.Err }

// installTime bounds the installation.
const installTime = 5 * time.Minute

// installPeer makes a Python with os-ken below dir, and returns where it is.
func installPeer(ctx context.Context, dir string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	venv := filepath.Join(dir, "venv")
	python := filepath.Join(venv, "bin", "python")
	for _, argv := range [][]string{
		{"python3", "-m", "venv", venv},
		{python, "-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir", "--disable-pip-version-check", "--retries", "1", osKenPackage},
	} {
		cmd := exec.CommandContext(limited, argv[0], argv[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it starts others
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err != nil {
			return "", &MissingPeerError{fmt.Errorf("%s: %w: %s", cmd, err, tail(out))}
		}
	}
	return python, nil
}

// startPeer starts os-ken, with that Python, or with one that it makes.
func startPeer(ctx context.Context, n *reactiveNet, python string) (*rival, error) {
	if python == "" {
		var err error
		if python, err = installPeer(ctx, n.dir); err != nil {
			return nil, err
		}
	} else if out, err := exec.CommandContext(ctx, python, "-c", "import os_ken.base.app_manager").CombinedOutput(); err != nil {
		return nil, &MissingPeerError{fmt.Errorf("%s: %w: %s", python, err, tail(out))}
	}
	script := filepath.Join(n.dir, "reactive.py") // its name is that of the module
	if err := os.WriteFile(script, reactivePeer, 0o644); err != nil {
		return nil, err
	}
	return startRival(n, osKen, peerPort, python, "-B", script, fmt.Sprint(peerPort))
}

// The ports of the two controllers.
const (
	oursPort = 6653
	peerPort = 6654
)

func startOurs(n *reactiveNet) (*rival, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startRival(n, "ours", oursPort, self, "agent", "reactive", "--listen", fmt.Sprintf("127.0.0.1:%d", oursPort))
}

// missing reports whether the peer is not to be had, which leaves ours to be measured alone.
func missing(err error) bool {
	var m *MissingPeerError
	return errors.As(err, &m)
}
