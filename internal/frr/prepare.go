package frr

import (
	"context"
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

// Prepare makes a router's directory with the configurations of its daemons, and lists the daemons in the order of
// their start, for who starts them by itself. Netns, Cgroup and Died of the spec mean nothing here.
func Prepare(ctx context.Context, spec Spec) ([]Process, error) {
	install, err := Find()
	if err != nil {
		return nil, err
	}
	r := &Router{spec: spec, install: install}
	all, err := r.processes(ctx)
	if err != nil {
		return nil, fmt.Errorf("FRR of %s: %w", spec.Name, err)
	}
	return all, nil
}

func (r *Router) processes(ctx context.Context) (all []Process, err error) {
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
		if slices.Contains(r.spec.Check, name) {
			if err := r.dryRun(ctx, name); err != nil {
				return nil, err
			}
		}
		p := Process{Name: name, Argv: append([]string{r.install.path(name)}, r.argv(name)...), Ready: []string{r.file(name + ".vty")}}
		if name == zebra {
			p.Ready = append(p.Ready, r.file(zserv)) // where the others look for it
		}
		all = append(all, p)
	}
	return all, nil
}

// names lists the daemons to run in the order of their start.
func (r *Router) names() ([]string, error) {
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

func (r *Router) file(name string) string { return filepath.Join(r.spec.Dir, name) }

// prepare makes the directory, FRR's own as its daemons make their sockets there, without what an earlier run
// left: a socket that is there says that its daemon is.
func (r *Router) prepare() error {
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

func (r *Router) write(name, text string) error {
	if err := os.WriteFile(r.file(name), []byte(text), 0o640); err != nil {
		return err
	}
	return os.Chown(r.file(name), r.install.uid, r.install.gid)
}

// argv keeps a daemon out of the machine's own directories and ports.
func (r *Router) argv(name string) []string {
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
