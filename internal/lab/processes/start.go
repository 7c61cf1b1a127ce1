package processes

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// Start starts a prepared command inside a node, in one of its cgroups: it ends with the lab, whoever waits for it. Where
// cmd.Env is nil it gets the node's environment.
func (p *Processes) Start(n *plan.Node, group string, cmd *exec.Cmd) error {
	if cmd.Env == nil {
		cmd.Env = p.Environ(n)
	}
	return startIn(p.Group(n.Name, group), cmd, func() error {
		return nsenter.Thread(func() error {
			if err := p.enter(n); err != nil {
				return err
			}
			return cmd.Start() // the child has the namespaces of the thread that forks
		})
	})
}

// startIn has the command begin in a cgroup: one that joined later could have children by then that are outside.
func startIn(c cgroups.Group, cmd *exec.Cmd, start func() error) error {
	if err := c.Make(); err != nil {
		return err
	}
	dir, err := os.Open(string(c))
	if err != nil {
		return err
	}
	defer dir.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return start()
}

// Spawn starts a daemon or a program inside a node with its output in its log, apart from this process: it lives on when
// this process ends. How it ended is noted while this process lives.
func (p *Processes) Spawn(n *plan.Node, name string, cmd *exec.Cmd) error {
	_ = p.Group(n.Name, name).RemoveEmpty() // it may have been killed by others; busy: the start tells
	return p.spawn(n.Name, name, cmd, func() error { return p.Start(n, name, cmd) })
}

// SpawnOutside is Spawn in the namespaces of this process, for a program that is in several nodes, or in none: its cgroup
// and its files are those of a node of this name. It has the environment of cmd.
func (p *Processes) SpawnOutside(node, name string, cmd *exec.Cmd) error {
	return p.spawn(node, name, cmd, func() error { return startIn(p.Group(node, name), cmd, cmd.Start) })
}

func (p *Processes) spawn(node, name string, cmd *exec.Cmd, start func() error) error {
	log, err := os.OpenFile(p.Dir.Log(node, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	key := node + "/" + name
	ended := p.exits.begin(key)
	if err := start(); err != nil {
		return fmt.Errorf("start %s: %w", key, err)
	}
	go func() { // ends with the process
		cmd.Wait() //nolint:errcheck // ProcessState says how it ended
		ended(cmd.ProcessState.String())
	}()
	return nil
}
