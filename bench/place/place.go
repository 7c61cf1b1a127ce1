// Package place makes network namespaces without names for benchmarks, and runs programs in them.
package place

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// A Place is a network namespace without a name: it goes with this process, however that ends, and so do
// the programs in it, because the thread that starts them lives as long as the place.
type Place struct {
	file  *os.File // of the namespace
	calls chan func()
}

// New makes a namespace.
func New() (*Place, error) {
	file, err := nsenter.New(quiet)
	if err != nil {
		return nil, err
	}
	return Enter(file)
}

// Enter gives the namespace of a file, which it takes over.
func Enter(file *os.File) (*Place, error) {
	p := &Place{file: file}
	if err := p.live(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// live starts the place's thread, which goes there first.
func (p *Place) live() error {
	p.calls = make(chan func())
	came := make(chan error)
	go nsenter.Thread(func() error { //nolint:errcheck // came tells; Close ends it, and its thread with it
		err := nsenter.Join(p.file)
		if came <- err; err != nil {
			return err
		}
		for f := range p.calls {
			f()
		}
		return nil
	})
	return <-came
}

// quiet has addresses count at once, and nobody ask for routers.
func quiet() error {
	for _, s := range []string{"all/accept_dad", "default/accept_dad", "default/router_solicitations"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+s, []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
}

// Close ends what was started there with the place.
func (p *Place) Close() {
	close(p.calls)
	p.file.Close()
}

// In runs f inside.
func (p *Place) In(f func() error) error {
	done := make(chan error, 1)
	p.calls <- func() { done <- f() }
	return <-done
}

// Start starts a program inside. Ctrl-C of a terminal is not for it: who started it ends it.
func (p *Place) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return p.In(cmd.Start)
}

// Run runs a program inside to its end and returns what it prints.
func (p *Place) Run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := p.Start(cmd); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() }) // it may be gone
	defer stop()
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(out.Bytes()))
	}
	return out.String(), nil
}

// IP runs commands of ip(8) inside; %far in what it is told is the file of another place.
func (p *Place) IP(ctx context.Context, far *Place, commands ...string) error {
	const inherited = "/proc/self/fd/3"
	text := strings.ReplaceAll(strings.Join(commands, "\n"), "%far", inherited)
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(text)
	if far != nil {
		cmd.ExtraFiles = []*os.File{far.file}
	}
	if _, err := p.Run(ctx, cmd); err != nil {
		return fmt.Errorf("%w: of %q", err, text)
	}
	return nil
}

// Path names the namespace's file as other processes see it while this one lives.
func (p *Place) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.file.Fd()) }

// Set writes values of /proc/sys/net, a path and its value for each.
func (p *Place) Set(values map[string]string) error {
	return p.In(func() error {
		for path, value := range values {
			if err := os.WriteFile("/proc/sys/net/"+path, []byte(value), 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// Await asks until there is no error.
func Await(ctx context.Context, what string, ask func() error) error {
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
