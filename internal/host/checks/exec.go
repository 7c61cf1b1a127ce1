package checks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
	"scaffold.dev/scaffold/internal/linux/priority"
)

// exec runs a command that this host allows, as the serving program's user, with nothing of the daemon's own: no
// capability, environment, descriptor, nor what set-user-ID programs would give. Its output goes nowhere. It sees the
// host's files, and the network of the program.
func (c Check) exec(ctx context.Context, word string) error {
	command, err := c.Allowed.Command(word)
	if err != nil {
		return err
	}
	as := nobody
	if c.Servant != nil {
		as = c.Servant.user()
	}
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/",
		"SCAFFOLD_ADDRESS=" + c.To.Addr().String(), fmt.Sprintf("SCAFFOLD_PORT=%d", c.To.Port()),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &as}
	if err := c.start(cmd); err != nil {
		if errors.Is(err, syscall.EPERM) {
			err = fmt.Errorf("%w: hostd needs CAP_SETUID, CAP_SETGID and CAP_KILL to run checks as user %d: `scaffold install host` writes the unit that has them", err, as.Uid)
		}
		return fmt.Errorf("exec:%s: %w", word, err)
	}
	_ = priority.Ordinary(cmd.Process.Pid) // it may have ended
	ended := make(chan struct{})
	go func() { // ends with the process
		defer close(ended)
		for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	// The leader has not been waited for, so the group's number is nobody else's. What it left behind ends too.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // there is the leader
	err = cmd.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("exec:%s: no end in %v", word, checkLimit)
	}
	if err != nil {
		return fmt.Errorf("exec:%s: %w", word, err)
	}
	return nil
}

// start starts it from a thread of its own: a child inherits the thread's namespace, and that it never gains rights.
func (c Check) start(cmd *exec.Cmd) error {
	return nsenter.Thread(func() error {
		if err := c.In.Join(); err != nil {
			return err
		}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no_new_privs: %w", err)
		}
		// Descriptors of our own are closed there anyway; one that whoever started hostd left open would not be.
		unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) //nolint:errcheck // Linux 5.11; before it there are ours alone
		return cmd.Start()
	})
}
