package lab

import (
	"context"
	"os/exec"
	"syscall"
)

// Command prepares a command for Start, to be run in any node: as it is written, without variables. A name
// without a slash is looked for where nodes look for programs. When ctx ends it is killed with its process group.
func (l *Lab) Command(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	path, err := l.lookPath(argv[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us to pass on
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd, nil
}

// Environ is what programs in a node see, nil for a node that the lab does not have.
func (l *Lab) Environ(node string) []string {
	n := l.plan.Node(node)
	if n == nil {
		return nil
	}
	return l.environ(n)
}
