package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/operate/setup"
)

// RunDir is where daemons and labs keep their sockets.
const RunDir = "/run/scaffold"

// APIVariable names the endpoint for a whole shell session.
const APIVariable = "SCAFFOLD_API"

// Remote says which daemon a command speaks to: choose has the order.
type Remote struct {
	API, Lab string
	Run      string                   // RunDir, but for tests
	Getenv   func(string) string      // os.Getenv, but for tests
	Alive    func(socket string) bool // whether somebody accepts there
	Mine     func(socket string) bool // whether this user may connect there
	Login    func() string            // where the one network is that this user logged in to
	Patience time.Duration            // tests: how long the network's judgement is waited for; 0: as package diagnosis says
}

// Add gives a command the flags that say which daemon it speaks to.
func Add(flags *pflag.FlagSet) *Remote {
	r := AddLocal(flags)
	flags.StringVar(&r.API, "api", "", "endpoint to ask, unix:/path, http://host:port or https://host:port; of several controllers, joined by commas, the first that answers (default: $"+APIVariable+", else what `scaffold config` says)")
	return r
}

// AddLocal is for commands that ask daemons of this machine alone.
func AddLocal(flags *pflag.FlagSet) *Remote {
	r := &Remote{Run: RunDir, Getenv: os.Getenv, Alive: Accepts, Mine: Writable, Login: onlyLogin}
	flags.StringVar(&r.Lab, "lab", "", "ask the lab of this name")
	return r
}

// Accepts reports whether somebody accepts connections at a socket, also one that is not ours to use.
func Accepts(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return errors.Is(err, fs.ErrPermission) // somebody's, only not ours: let the call itself say so
	}
	c.Close()
	return true
}

// Chosen is what was named outright, "" if nothing was.
func (r *Remote) Chosen() string {
	switch {
	case r.API != "":
		return r.API
	case r.Lab != "":
		return ""
	}
	return r.Getenv(APIVariable)
}

// admin finds the endpoint of the Admin API.
func (r *Remote) admin() (string, error) {
	c, err := r.Choose()
	return c.Endpoint, err
}

// A NodeSocket is the API of one host of a lab, or of this machine.
type NodeSocket struct{ Node, Path string }

// Hosts finds the endpoints of host daemons: all of a lab's, or the one of this machine. host, where
// given, picks one of the lab's.
func (r *Remote) Hosts(host string) ([]NodeSocket, error) {
	if e := r.Chosen(); e != "" && host != "" {
		return nil, exit.Failf(exit.Usage, "--lab names the lab", "--host is of a lab, and $%s names another endpoint", APIVariable)
	} else if e != "" {
		e, err := answering(strings.Split(e, ","))
		return []NodeSocket{{Path: e}}, exit.Fail(exit.Usage, "", err)
	}
	if r.Lab == "" && host == "" {
		if socket := filepath.Join(r.Run, "hostd.sock"); r.Alive(socket) {
			return []NodeSocket{{Path: "unix:" + socket}}, nil
		}
	}
	if host == "" {
		host = "*"
	}
	found, err := r.labSockets(host, "hostd.sock")
	for i := range found {
		found[i].Path = "unix:" + found[i].Path
	}
	return found, err
}

// labSockets returns the live sockets of one lab: the named one, or the only one that runs.
func (r *Remote) labSockets(node, name string) ([]NodeSocket, error) {
	byLab, dead := r.InLabs(node, name)
	if len(byLab) == 0 && dead == 0 && node != "*" {
		if others, _ := r.InLabs("*", name); len(others) > 0 {
			return nil, exit.Fail(exit.NotFound, "`scaffold lab status` lists the nodes", r.absent(node, name))
		}
	}
	if len(byLab) == 0 && dead > 0 && r.Lab != "" && node == "*" {
		return nil, exit.Failf(exit.Unreachable, fmt.Sprintf("`scaffold lab status %s` lists its nodes, `scaffold lab start NODE --lab %s` starts one's daemon", r.Lab, r.Lab),
			"lab %s is there, and no %s of it answers", r.Lab, map[bool]string{true: "host", false: "controller"}[name == "hostd.sock"])
	}
	return r.onlyLab(byLab, node, name)
}

// InLabs finds the live sockets by lab, and counts those of daemons that have died.
func (r *Remote) InLabs(node, name string) (byLab map[string][]NodeSocket, dead int) {
	lab := r.Lab
	if lab == "" {
		lab = "*"
	}
	byLab = map[string][]NodeSocket{}
	paths, _ := filepath.Glob(filepath.Join(r.Run, "lab", lab, node, name)) // a bad pattern is nobody's name
	for _, path := range paths {
		if !r.Alive(path) {
			dead++
			continue
		}
		dir := filepath.Dir(path)
		key := filepath.Base(filepath.Dir(dir))
		byLab[key] = append(byLab[key], NodeSocket{filepath.Base(dir), path})
	}
	return byLab, dead
}

func (r *Remote) onlyLab(byLab map[string][]NodeSocket, node, name string) ([]NodeSocket, error) {
	if len(byLab) == 1 {
		for _, sockets := range byLab {
			return sockets, nil
		}
	}
	if len(byLab) > 1 {
		return nil, exit.Failf(exit.Usage, "say which one with --lab NAME", "several labs run here: %s", strings.Join(output.Sorted(byLab), ", "))
	}
	return nil, r.nobody(node, name)
}

// nobody says that nobody was found, as far as this user may look.
func (r *Remote) nobody(node, name string) error {
	for _, dir := range []string{r.Run, filepath.Join(r.Run, "lab"), filepath.Join(r.Run, "lab", r.Lab)} {
		if _, err := os.ReadDir(dir); errors.Is(err, fs.ErrPermission) {
			return exit.Failf(exit.Missing, "try again with sudo", "this user may not look into %s: daemons and labs in there are not seen", dir)
		}
	}
	hint := "start one (`scaffold lab up FILE`, `scaffold controld`) or name one with --api"
	if name == "hostd.sock" && node == "*" && r.Lab == "" {
		hint = "start it (`scaffold install host`, `scaffold hostd --name NAME`), or say which lab's with --lab"
	}
	if r.Lab != "" {
		hint = "`scaffold lab status` lists the labs that are up, `scaffold lab up FILE` brings one up"
	}
	if start := startInstalled(isThere, r.Lab, name); start != "" {
		hint = start + " starts it; `scaffold doctor` and journalctl say why it does not run"
	}
	return exit.Fail(exit.Unreachable, hint, r.absent(node, name))
}

// startInstalled is how the daemon is started whose socket is meant, where it is installed on this machine.
func startInstalled(there func(path string) bool, lab, name string) string {
	for _, role := range []setup.Role{setup.Controller, setup.Host} { // a host's daemon alone knows nothing of the network
		if lab != "" || name != role.Daemon()+".sock" && name != "controld.sock" {
			continue
		}
		for _, dir := range []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
			if !there(role.Config()) {
				break // a package brings the units of all roles
			}
			if there(filepath.Join(dir, role.Unit())) {
				return "`systemctl start " + strings.TrimSuffix(role.Unit(), ".service") + "`"
			}
		}
	}
	return ""
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (r *Remote) absent(node, name string) error {
	switch {
	case r.Lab != "" && node != "*":
		return fmt.Errorf("no host %q answers in lab %q", node, r.Lab)
	case node != "*":
		return fmt.Errorf("no host %q answers in a lab of this machine", node)
	case r.Lab != "":
		return fmt.Errorf("no lab %q answers on this machine", r.Lab)
	}
	if name == "hostd.sock" {
		return fmt.Errorf("no host daemon (hostd) answers on this machine and no lab runs here")
	}
	return fmt.Errorf("no scaffold daemon answers on this machine and no lab runs here")
}
