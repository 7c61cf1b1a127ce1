package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// enter moves the calling thread, which must be locked and is not fit for anything else afterwards,
// into a node: its network, its /etc files in a mount namespace that nobody else sees, its name.
func (p *Processes) enter(n *plan.Node) error {
	if err := nsenter.JoinAt(plan.NetnsPath(n.Netns)); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("node %s: private mounts: %w", n.Name, err)
	}
	// Slave: what is unmounted outside disappears here too, and nothing goes the other way.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("node %s: private mounts: %w", n.Name, err)
	}
	for _, name := range []string{resolvConf, nsswitch} {
		own := filepath.Join(p.Dir.Node(n.Name), name)
		if _, err := os.Stat(own); err != nil {
			continue
		}
		if err := unix.Mount(own, "/etc/"+name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("node %s: put its own %s over /etc/%s: %w", n.Name, name, name, err)
		}
	}
	if p.Plan.File.Bare {
		if err := unix.Mount(p.hostsPath(), "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("node %s: put the lab's hosts over /etc/hosts: %w", n.Name, err)
		}
	}
	return unix.Sethostname([]byte(n.Name))
}

// Exec turns this process into a command inside a node. It returns only if that failed.
func (p *Processes) Exec(n *plan.Node, argv []string) error {
	path, err := p.LookPath(argv[0])
	if err != nil {
		return err
	}
	return nsenter.Thread(func() error {
		c := p.Group(n.Name, file.ExecGroup)
		if err := c.Make(); err != nil {
			return err
		}
		if err := c.Join(); err != nil {
			return err
		}
		if err := p.enter(n); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, p.Environ(n)))
	})
}
