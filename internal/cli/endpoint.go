package cli

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
)

// runDir is where daemons and labs keep their sockets.
const runDir = "/run/scaffold"

// apiVariable names the endpoint for a whole shell session.
const apiVariable = "SCAFFOLD_API"

// remote says which daemon a command speaks to. In this order: --api, --lab, $SCAFFOLD_API, the
// daemon of this machine, the only lab that runs here.
type remote struct {
	api, lab string
	run      string                   // runDir, but for tests
	getenv   func(string) string      // os.Getenv, but for tests
	alive    func(socket string) bool // whether somebody accepts there
}

func addRemote(flags *pflag.FlagSet) *remote {
	r := addLocal(flags)
	flags.StringVar(&r.api, "api", "", "endpoint to ask, unix:/path, http://host:port or https://host:port; of several controllers, joined by commas, the first that answers (default: $"+apiVariable+", else the daemon of this machine, else the only running lab)")
	return r
}

// addLocal is for commands that ask daemons of this machine alone.
func addLocal(flags *pflag.FlagSet) *remote {
	r := &remote{run: runDir, getenv: os.Getenv, alive: accepts}
	flags.StringVar(&r.lab, "lab", "", "ask the lab of this name")
	return r
}

func accepts(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return errors.Is(err, fs.ErrPermission) // somebody's, only not ours: let the call itself say so
	}
	c.Close()
	return true
}

// chosen is what was named outright, "" if nothing was.
func (r *remote) chosen() string {
	switch {
	case r.api != "":
		return r.api
	case r.lab != "":
		return ""
	}
	return r.getenv(apiVariable)
}

// admin finds the endpoint of the Admin API.
func (r *remote) admin() (string, error) {
	if e := r.chosen(); e != "" {
		return e, nil
	}
	if r.lab == "" {
		for _, name := range []string{"hostd.sock", "controld.sock"} {
			if socket := filepath.Join(r.run, name); r.alive(socket) {
				return "unix:" + socket, nil
			}
		}
	}
	sockets, err := r.labSockets("*", "controld.sock")
	if e := onlyLogin(); err != nil && r.lab == "" && e != "" {
		return e, nil
	}
	if err != nil {
		return "", err
	}
	return "unix:" + sockets[0].path, nil
}

// A nodeSocket is the API of one host of a lab, or of this machine.
type nodeSocket struct{ node, path string }

// hosts finds the endpoints of host daemons: all of a lab's, or the one of this machine. host, where
// given, picks one of the lab's.
func (r *remote) hosts(host string) ([]nodeSocket, error) {
	if e := r.chosen(); e != "" {
		e, err := answering(strings.Split(e, ","))
		return []nodeSocket{{path: e}}, fail(ExitUsage, "", err)
	}
	if r.lab == "" && host == "" {
		if socket := filepath.Join(r.run, "hostd.sock"); r.alive(socket) {
			return []nodeSocket{{path: "unix:" + socket}}, nil
		}
	}
	if host == "" {
		host = "*"
	}
	found, err := r.labSockets(host, "hostd.sock")
	for i := range found {
		found[i].path = "unix:" + found[i].path
	}
	return found, err
}

// labSockets returns the live sockets of one lab: the named one, or the only one that runs.
func (r *remote) labSockets(node, name string) ([]nodeSocket, error) {
	byLab, dead := r.inLabs(node, name)
	if len(byLab) == 0 && dead == 0 && node != "*" {
		if others, _ := r.inLabs("*", name); len(others) > 0 {
			return nil, fail(ExitNotFound, "`scaffold lab status` lists the nodes", r.absent(node, name))
		}
	}
	return r.onlyLab(byLab, node, name)
}

// inLabs finds the live sockets by lab, and counts those of daemons that have died.
func (r *remote) inLabs(node, name string) (byLab map[string][]nodeSocket, dead int) {
	lab := r.lab
	if lab == "" {
		lab = "*"
	}
	byLab = map[string][]nodeSocket{}
	paths, _ := filepath.Glob(filepath.Join(r.run, "lab", lab, node, name)) // a bad pattern is nobody's name
	for _, path := range paths {
		if !r.alive(path) {
			dead++
			continue
		}
		dir := filepath.Dir(path)
		key := filepath.Base(filepath.Dir(dir))
		byLab[key] = append(byLab[key], nodeSocket{filepath.Base(dir), path})
	}
	return byLab, dead
}

func (r *remote) onlyLab(byLab map[string][]nodeSocket, node, name string) ([]nodeSocket, error) {
	if len(byLab) == 1 {
		for _, sockets := range byLab {
			return sockets, nil
		}
	}
	if len(byLab) > 1 {
		return nil, failf(ExitUsage, "say which one with --lab NAME", "several labs run here: %s", strings.Join(sorted(byLab), ", "))
	}
	return nil, r.nobody(node, name)
}

// nobody says that nobody was found, as far as this user may look.
func (r *remote) nobody(node, name string) error {
	for _, dir := range []string{r.run, filepath.Join(r.run, "lab"), filepath.Join(r.run, "lab", r.lab)} {
		if _, err := os.ReadDir(dir); errors.Is(err, fs.ErrPermission) {
			return failf(ExitMissing, "try again with sudo", "this user may not look into %s: daemons and labs in there are not seen", dir)
		}
	}
	hint := "start one (`scaffold lab up FILE`, `scaffold controld`) or name one with --api"
	if name == "hostd.sock" && node == "*" && r.lab == "" {
		hint = "start it (`scaffold install host`, `scaffold hostd --name NAME`), or say which lab's with --lab"
	}
	return fail(ExitUnreachable, hint, r.absent(node, name))
}

func (r *remote) absent(node, name string) error {
	switch {
	case r.lab != "" && node != "*":
		return fmt.Errorf("no host %q answers in lab %q", node, r.lab)
	case node != "*":
		return fmt.Errorf("no host %q answers in a lab of this machine", node)
	case r.lab != "":
		return fmt.Errorf("no lab %q answers on this machine", r.lab)
	}
	if name == "hostd.sock" {
		return fmt.Errorf("no host daemon (hostd) answers on this machine and no lab runs here")
	}
	return fmt.Errorf("no scaffold daemon answers on this machine and no lab runs here")
}
