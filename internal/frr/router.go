package frr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
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
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	processes, err := r.processes(ctx)
	if err != nil {
		return err
	}
	for _, p := range processes {
		d, err := r.launch(p)
		if err != nil {
			return err
		}
		r.daemons = append(r.daemons, d)
		for _, file := range p.Ready {
			if err := d.await(ctx, file); err != nil {
				return err
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up = r.dead == nil
	return r.dead
}

// launch starts a daemon, in the foreground: its end is seen at once.
func (r *Router) launch(p Process) (*daemon, error) {
	name := p.Name
	log, err := os.OpenFile(r.file(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := log.Chown(r.install.uid, r.install.gid); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.Argv[0], append(p.Argv[1:], "--log", "file:"+log.Name())...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.spec.Dir, log, log
	d := &daemon{name: name, router: r.spec.Name, log: log.Name(), cmd: cmd, done: make(chan struct{})}
	if err := d.start(r.spec.Netns, r.spec.Cgroup); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go r.mourn(d)
	return d, nil
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
	return Ask(ctx, r.spec.Dir, commands...)
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
