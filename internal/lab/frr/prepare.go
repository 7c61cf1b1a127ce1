package frr

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	zebra = "zebra"
	mgmtd = "mgmtd" // from FRR 9 on; keeps the configuration of some of the others
	zserv = "zserv.api"
)

// A Process is a daemon that is ready to be started, in the namespace of its router.
type Process struct {
	Name  string
	Argv  []string
	Ready []string // files that are there when the daemon can be spoken to; the next is not to be started before
}

// A Spec says what one router runs.
type Spec struct {
	Name  string            // in messages
	Dir   string            // of its own, absolute: configurations, sockets, pid files. Made if it is not there
	Files map[string]string // configuration of each daemon to run, by its name: zebra, ospf6d, bgpd ...
}

// Prepare makes a router's directory with the configurations of its daemons, and lists the daemons in the order of
// their start: zebra first, for the others try again only after 10 s where it is not there.
func Prepare(spec Spec) ([]Process, error) {
	install, err := Find()
	if err != nil {
		return nil, err
	}
	r := &router{spec, install}
	all, err := r.processes()
	if err != nil {
		return nil, fmt.Errorf("FRR of %s: %w", spec.Name, err)
	}
	return all, nil
}

// A router is one that is being prepared.
type router struct {
	spec    Spec
	install *Install
}

func (r *router) processes() (all []Process, err error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := r.write(name+".conf", r.spec.Files[name]); err != nil {
			return nil, err
		}
		p := Process{Name: name, Argv: r.private(append([]string{r.install.path(name)}, r.argv(name)...)), Ready: []string{r.file(name + ".vty")}}
		if name == zebra {
			p.Ready = append(p.Ready, r.file(zserv)) // where the others look for it
		}
		all = append(all, p)
	}
	return all, nil
}

// names lists the daemons to run in the order of their start.
func (r *router) names() ([]string, error) {
	names := []string{zebra}
	if r.install.Has(mgmtd) {
		names = append(names, mgmtd)
	}
	for _, name := range slices.Sorted(maps.Keys(r.spec.Files)) {
		switch {
		case strings.ContainsAny(name, "/. ") || name == "":
			return nil, fmt.Errorf("%q is no name of a daemon", name)
		case !r.install.Has(name):
			return nil, fmt.Errorf("there is no daemon %s in %s; a configuration is named after its daemon: zebra, ospf6d, ospfd, bgpd, staticd", name, r.install.dir)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, nil
}

func (r *router) file(name string) string { return filepath.Join(r.spec.Dir, name) }

// prepare makes the directory, FRR's own as its daemons make their sockets there, without what an earlier run
// left: a socket that is there says that its daemon is.
func (r *router) prepare() error {
	if !filepath.IsAbs(r.spec.Dir) {
		return fmt.Errorf("directory %q is not absolute", r.spec.Dir)
	}
	if err := os.MkdirAll(r.spec.Dir, 0o755); err != nil {
		return err
	}
	if err := r.install.reachable(r.spec.Dir); err != nil {
		return err
	}
	for _, pattern := range []string{"*.vty", "*.pid", zserv} {
		old, _ := filepath.Glob(r.file(pattern)) // the pattern is well-formed
		for _, path := range old {
			os.Remove(path)
		}
	}
	return os.Chown(r.spec.Dir, r.install.uid, r.install.gid)
}

func (r *router) write(name, text string) error {
	if err := os.WriteFile(r.file(name), []byte(text), 0o640); err != nil {
		return err
	}
	return os.Chown(r.file(name), r.install.uid, r.install.gid)
}

// temporary is where FRR keeps a directory and a file for each daemon, by its pid; one that is killed leaves them for ever.
const temporary = "/var/tmp"

// private gives a daemon a directory for what is temporary of its own, which goes with it.
func (r *router) private(argv []string) []string {
	if strings.HasPrefix(r.spec.Dir, temporary+"/") { // it would not be seen any more
		return argv
	}
	return append([]string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o mode=1777,size=64m tmpfs ` + temporary + ` && exec "$0" "$@"`}, argv...)
}

// argv keeps a daemon out of the machine's own directories and ports.
func (r *router) argv(name string) []string {
	argv := []string{
		"-z", r.file(zserv), "--vty_socket", r.spec.Dir, "-i", r.file(name + ".pid"), "-f", r.file(name + ".conf"),
		"-A", "127.0.0.1", "-P", "0", "-u", account, "-g", account,
	}
	switch name {
	case zebra:
		argv = append(argv, "-M", "dplane_fpm_nl")
	case "bgpd":
		argv = append(argv, "-p", "179")
	}
	return argv
}
