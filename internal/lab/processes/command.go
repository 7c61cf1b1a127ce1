package processes

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"syscall"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// Command prepares a command for Start, to be run in any node: as it is written, without variables. A name
// without a slash is looked for where nodes look for programs. When ctx ends it is killed with its process group.
func (p *Processes) Command(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	path, err := p.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us to pass on
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd, nil
}

// Output runs a command inside a node to its end and returns what it printed, on both its outputs. Where children of it may
// keep them open, cmd.WaitDelay says how long that is waited for.
func (p *Processes) Output(n *plan.Node, cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := p.Start(n, file.ExecGroup, cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return out.Bytes(), err
}

// Run runs a command inside a node to its end; its output goes to the node's exec log.
func (p *Processes) Run(n *plan.Node, cmd *exec.Cmd) error {
	log, err := os.OpenFile(p.Dir.Log(n.Name, file.ExecGroup), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := p.Start(n, file.ExecGroup, cmd); err != nil {
		return err
	}
	return cmd.Wait()
}
