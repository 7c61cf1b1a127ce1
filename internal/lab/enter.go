package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/nsenter"
)

// Files that a host of a lab has its own version of: names are asked of the host's daemon, and not
// of a resolver service of the machine.
const (
	resolvConf = "resolv.conf"
	nsswitch   = "nsswitch.conf"
	hostsFile  = "hosts"
)

// writeEtc writes a host's own versions of files in /etc.
func (l *Lab) writeEtc(n *PlanNode) error {
	text, sources := "nameserver ::1\nsearch "+l.File.Network.Domain+"\n", "files dns"
	if l.File.bare { // nobody would answer
		text, sources = "", "files"
	}
	if err := os.WriteFile(filepath.Join(l.nodeDir(n), resolvConf), []byte(text), 0o644); err != nil {
		return err
	}
	system, err := os.ReadFile("/etc/" + nsswitch)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the C library's default is to ask DNS
	}
	if err != nil {
		return err
	}
	hosts := regexp.MustCompile(`(?m)^hosts:.*$`).ReplaceAllString(string(system), "hosts: "+sources)
	return os.WriteFile(filepath.Join(l.nodeDir(n), nsswitch), []byte(hosts), 0o644)
}

// enter moves the calling thread, which must be locked and is not fit for anything else afterwards,
// into a node: its network, its /etc files in a mount namespace that nobody else sees, its name.
func (l *Lab) enter(n *PlanNode) error {
	if err := nsenter.JoinAt(netnsPath(n.Netns)); err != nil {
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
		own := filepath.Join(l.nodeDir(n), name)
		if _, err := os.Stat(own); err != nil {
			continue
		}
		if err := unix.Mount(own, "/etc/"+name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("node %s: put its own %s over /etc/%s: %w", n.Name, name, name, err)
		}
	}
	if l.File.bare {
		if err := unix.Mount(l.hostsPath(), "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("node %s: put the lab's hosts over /etc/hosts: %w", n.Name, err)
		}
	}
	return unix.Sethostname([]byte(n.Name))
}

// Start starts a prepared command inside a node, in one of its cgroups: it ends with the lab, whoever
// waits for it. Where cmd.Env is nil it gets the node's environment.
func (l *Lab) Start(node string, cmd *exec.Cmd) error {
	n := l.plan.Node(node)
	if n == nil {
		return fmt.Errorf("lab %s has no node %q; it has %s", l.File.Name, node, l.File.names())
	}
	return l.start(n, execGroup, cmd)
}

func (l *Lab) start(n *PlanNode, group string, cmd *exec.Cmd) error {
	if cmd.Env == nil {
		cmd.Env = l.environ(n)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	c := l.cgroup(n.Name).child(group)
	if err := c.make(); err != nil {
		return err
	}
	dir, err := os.Open(string(c))
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return nsenter.Thread(func() error {
		if err := l.enter(n); err != nil {
			return err
		}
		return cmd.Start() // the child has the namespaces of the thread that forks
	})
}

// Exec turns this process into a command inside a node. It returns only if that failed.
func (l *Lab) Exec(node string, argv []string) error {
	n := l.plan.Node(node)
	if n == nil {
		return fmt.Errorf("lab %s has no node %q; it has %s", l.File.Name, node, l.File.names())
	}
	path, err := l.lookPath(argv[0])
	if err != nil {
		return err
	}
	return nsenter.Thread(func() error {
		c := l.cgroup(n.Name).child(execGroup)
		if err := c.make(); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(string(c), "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("join %s: %w", c, err)
		}
		if err := l.enter(n); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, l.environ(n)))
	})
}

// sbin is where daemons are, which the PATH of sudo and of ordinary users leaves out.
const sbin = ":/usr/local/sbin:/usr/sbin:/sbin"

// environ is what programs in a node see.
func (l *Lab) environ(n *PlanNode) (env []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "PATH=") && !strings.HasPrefix(e, "SCAFFOLD_") {
			env = append(env, e)
		}
	}
	env = append(env, "PATH="+l.path(), "SCAFFOLD_LAB="+l.File.Name, "SCAFFOLD_NODE="+n.Name)
	switch n.Kind {
	case Host:
		if n.bare {
			return env
		}
		return append(env, "SCAFFOLD_API=unix:"+l.Socket(n.Name), "SCAFFOLD_HOSTD="+l.Socket(n.Name))
	case Controller:
		return append(env, "SCAFFOLD_API=unix:"+l.Socket(n.Name))
	case Switch:
		return append(env, l.instance(n).Env()...)
	}
	return env
}

// product is the command that is the lab's own binary, wherever that is.
const product = "scaffold"

// path is PATH in a node. The directory of the lab's binary is in it where that has the usual name.
func (l *Lab) path() string {
	path := os.Getenv("PATH") + sbin
	if filepath.Base(l.opt.Binary) == product {
		path = filepath.Dir(l.opt.Binary) + ":" + path
	}
	return path
}

// lookPath is exec.LookPath that also looks where daemons are.
func (l *Lab) lookPath(name string) (string, error) {
	switch {
	case strings.Contains(name, "/"):
		return name, nil
	case name == product:
		return l.opt.Binary, nil
	}
	for _, dir := range filepath.SplitList(l.path()) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
