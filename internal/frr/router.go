package frr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Spec says what to run for one router.
type Spec struct {
	Name   string            // in messages
	Netns  string            // path of its network namespace
	Dir    string            // of its own, absolute: configurations, sockets, logs, pid files. Made if it is not there
	Files  map[string]string // configuration of each daemon to run, by its name: zebra, ospf6d, bgpd ...
	Check  []string          // daemons whose configuration is tried before the start: those with lines that a user wrote
	Cgroup string            // directory of the cgroup to start the daemons in; "" for that of this process
	Died   func(error)       // called once with the first daemon that ends without being asked to; nil to leave it
}

// A Router is the running daemons of one router.
type Router struct {
	spec    Spec
	install *Install
	daemons []*daemon // zebra first

	mu       sync.Mutex
	up       bool // Start has returned: a death is told to Died
	stopping bool
	dead     error // the first death that was not asked for
}

// readyTime bounds how long a daemon may take until its socket is there; 200 of them starting on one core need
// a good part of it.
const readyTime = 60 * time.Second

// Start runs the daemons of a router: zebra first, for the others try again only after 10 s where it is not
// there. It returns when all have opened their sockets. ctx bounds the start alone.
func Start(ctx context.Context, spec Spec) (*Router, error) {
	install, err := Find()
	if err != nil {
		return nil, err
	}
	r := &Router{spec: spec, install: install}
	if err := r.start(ctx); err != nil {
		r.Stop()
		return nil, fmt.Errorf("FRR of %s: %w", spec.Name, err)
	}
	return r, nil
}

func (r *Router) start(ctx context.Context) error {
	names, err := r.names()
	if err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for _, name := range names {
		if err := r.bring(ctx, name); err != nil {
			return err
		}
	}
	for _, d := range r.daemons {
		if err := d.await(ctx, r.file(d.name+".vty")); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up = r.dead == nil
	return r.dead
}

// bring starts one daemon with its configuration. Of zebra it waits until the others find it.
func (r *Router) bring(ctx context.Context, name string) error {
	if err := r.write(name+".conf", r.spec.Files[name]); err != nil {
		return err
	}
	if slices.Contains(r.spec.Check, name) {
		if err := r.dryRun(ctx, name); err != nil {
			return err
		}
	}
	d, err := r.launch(name)
	if err != nil {
		return err
	}
	r.daemons = append(r.daemons, d)
	if name == zebra {
		return d.await(ctx, r.file(zserv))
	}
	return nil
}

const (
	zebra = "zebra"
	mgmtd = "mgmtd" // from FRR 9 on; keeps the configuration of some of the others
	zserv = "zserv.api"
)

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

// launch starts a daemon, in the foreground: its end is seen at once.
func (r *Router) launch(name string) (*daemon, error) {
	log, err := os.OpenFile(r.file(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := log.Chown(r.install.uid, r.install.gid); err != nil {
		return nil, err
	}
	cmd := exec.Command(r.install.path(name), append(r.argv(name), "--log", "file:"+log.Name())...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.spec.Dir, log, log
	d := &daemon{name: name, router: r.spec.Name, log: log.Name(), cmd: cmd, done: make(chan struct{})}
	if err := d.start(r.spec.Netns, r.spec.Cgroup); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go r.mourn(d)
	return d, nil
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

// mourn waits for a daemon's end and tells of the first that was not asked for.
func (r *Router) mourn(d *daemon) {
	d.wait()
	r.mu.Lock()
	first := !r.stopping && r.dead == nil
	if first {
		r.dead = d.obituary()
	}
	tell := first && r.up
	r.mu.Unlock()
	if tell && r.spec.Died != nil {
		r.spec.Died(r.dead)
	}
}

// Err is nil as long as all daemons run, or have been stopped by Stop.
func (r *Router) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

// Ask gives commands to the daemons as an operator types them into vtysh, and returns what they answer.
func (r *Router) Ask(ctx context.Context, commands ...string) (string, error) {
	argv := []string{"--vty_socket", r.spec.Dir}
	for _, c := range commands {
		argv = append(argv, "-c", c)
	}
	cmd := exec.CommandContext(ctx, "vtysh", argv...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("FRR of %s: vtysh %q: %w: %s", r.spec.Name, commands, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// PID is the process of a daemon, 0 where the router does not run it.
func (r *Router) PID(name string) int {
	for _, d := range r.daemons {
		if d.name == name {
			return d.cmd.Process.Pid
		}
	}
	return 0
}

// Stop ends all daemons, zebra last so that it sees the others go. It takes the routes out of the kernel.
func (r *Router) Stop() error {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	var errs []error
	for _, d := range slices.Backward(r.daemons) {
		errs = append(errs, d.stop())
	}
	return errors.Join(errs...)
}
