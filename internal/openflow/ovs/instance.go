package ovs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Schema is where Debian's and Fedora's packages have that of the database.
const Schema = "/usr/share/openvswitch/vswitch.ovsschema"

// Package is what Debian calls it.
const Package = "openvswitch-switch"

// An Instance is one Open vSwitch: a database and a daemon with all their files in one directory.
type Instance struct {
	Dir  string                               // exists; OVS_RUNDIR of all programs that are to find the instance
	Look func(program string) (string, error) // exec.LookPath if nil
}

// Env is what programs of Open vSwitch need in their environment to speak to this instance.
func (i Instance) Env() []string {
	return []string{"OVS_RUNDIR=" + i.Dir, "OVS_LOGDIR=" + i.Dir, "OVS_DBDIR=" + i.Dir, "OVS_SYSCONFDIR=" + i.Dir}
}

// A MissingError says that a program of Open vSwitch is not there.
type MissingError struct {
	Program string
	Err     error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("Open vSwitch is not installed (%v): scripts/packages.sh demo installs it without starting its service; or install Debian's package %s", e.Err, Package)
}

func (e *MissingError) Unwrap() error { return e.Err }

// Check is an error if a program that an instance needs is missing.
func (i Instance) Check() error {
	for _, program := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"} {
		if _, err := i.look(program); err != nil {
			return err
		}
	}
	if _, err := os.Stat(Schema); err != nil {
		return &MissingError{Schema, err}
	}
	return nil
}

func (i Instance) look(program string) (string, error) {
	look := i.Look
	if look == nil {
		look = exec.LookPath
	}
	path, err := look(program)
	if err != nil {
		return "", &MissingError{program, err}
	}
	return path, nil
}

// Command is one of Open vSwitch's programs, for this instance.
func (i Instance) Command(program string, args ...string) (*exec.Cmd, error) {
	path, err := i.look(program)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), i.Env()...)
	return cmd, nil
}

func (i Instance) file(name string) string { return filepath.Join(i.Dir, name) }

// database is how the programs are told where it is.
func (i Instance) database() string { return "unix:" + i.file("db.sock") }

// Created reports whether the instance has its database.
func (i Instance) Created() bool {
	_, err := os.Stat(i.file("conf.db"))
	return err == nil
}

// Create makes the empty database.
func (i Instance) Create() (*exec.Cmd, error) {
	return i.Command("ovsdb-tool", "create", i.file("conf.db"), Schema)
}

// Both daemons print what they have to say, and tell nothing to the system's log.
var quiet = []string{"-vconsole:info", "-vsyslog:off", "-vfile:off"}

// Database is the database server. Programs find it when [Instance.Answers] says so.
func (i Instance) Database() (*exec.Cmd, error) {
	i.clear("ovsdb-server")
	args := []string{i.file("conf.db"), "--remote=p" + i.database(), "--pidfile"}
	return i.Command("ovsdb-server", append(args, quiet...)...)
}

// Daemon is the switch itself. Its ports are devices of the network namespace that it is started in.
func (i Instance) Daemon() (*exec.Cmd, error) {
	i.clear("ovs-vswitchd")
	return i.Command("ovs-vswitchd", append([]string{i.database(), "--pidfile"}, quiet...)...)
}

// clear removes the control sockets of processes that were killed; their names have the process number.
func (i Instance) clear(program string) {
	old, _ := filepath.Glob(i.file(program + ".*.ctl"))
	for _, path := range old {
		os.Remove(path)
	}
}

// Answers is an error until the database server takes connections.
func (i Instance) Answers() error {
	c, err := net.DialTimeout("unix", i.file("db.sock"), time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

// vsctlTime bounds how long ovs-vsctl may wait for the database or the daemon: without it, for ever.
const vsctlTime = 15 * time.Second

// Vsctl is ovs-vsctl, which waits until the daemon has done what it changed, unless told --no-wait.
func (i Instance) Vsctl(args ...string) (*exec.Cmd, error) {
	timeout := fmt.Sprintf("--timeout=%d", int(vsctlTime.Seconds()))
	return i.Command("ovs-vsctl", append([]string{timeout, "--db=" + i.database()}, args...)...)
}

// Settle ends when the daemon has done all that the database says by now: it changes something, and waits.
func (i Instance) Settle() (*exec.Cmd, error) {
	return i.Vsctl("set", "Open_vSwitch", ".", fmt.Sprintf("external_ids:settled=%d", time.Now().UnixNano()))
}
