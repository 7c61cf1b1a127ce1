package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A place is a network namespace without a name: it goes with this process, however that ends, and so do
// the programs in it, because the thread that starts them lives as long as the place.
type place struct {
	file  *os.File
	calls chan func()
}

func newPlace() (*place, error) {
	p := &place{calls: make(chan func())}
	made := make(chan error)
	go func() { // close ends it, and its thread with it
		runtime.LockOSThread() // and never unlocked
		made <- p.make()
		for f := range p.calls {
			f()
		}
	}()
	if err := <-made; err != nil {
		close(p.calls)
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	return p, nil
}

func (p *place) make() (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	for _, s := range []string{"all/accept_dad", "default/accept_dad", "default/router_solicitations"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+s, []byte("0"), 0); err != nil {
			return err
		}
	}
	p.file, err = os.Open("/proc/thread-self/ns/net")
	return err
}

func (p *place) close() {
	close(p.calls)
	p.file.Close()
}

// in runs f inside.
func (p *place) in(f func() error) error {
	done := make(chan error, 1)
	p.calls <- func() { done <- f() }
	return <-done
}

// start starts a program inside. Ctrl-C of a terminal is not for it: who started it ends it.
func (p *place) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return p.in(cmd.Start)
}

// run runs a program inside to its end and returns what it prints.
func (p *place) run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := p.start(cmd); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() }) //nolint:errcheck // it may be gone
	defer stop()
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(out.Bytes()))
	}
	return out.String(), nil
}

// ip runs ip(8) inside; %far in what it is told is the file of another place.
func (p *place) ip(ctx context.Context, far *place, args string) error {
	const inherited = "/proc/self/fd/3"
	cmd := exec.Command("ip", strings.Fields(strings.ReplaceAll(args, "%far", inherited))...)
	if far != nil {
		cmd.ExtraFiles = []*os.File{far.file}
	}
	_, err := p.run(ctx, cmd)
	return err
}

// await asks until there is no error.
func await(ctx context.Context, what string, ask func() error) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := ask()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
