package routerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/internal/bpf/features"
	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/operate/verdict"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

// helloEvery is between HELLOs on a port, docs/protocol.md §4; counters are reported as often.
const helloEvery = time.Second

// A daemon is the state of the loop. Fields are the loop's own unless they say otherwise.
type daemon struct {
	cfg     Config // constant
	log     *slog.Logger
	verdict *verdict.Watch         // what is wrong with this router; for every goroutine
	trouble atomic.Pointer[string] // why it has no controller; likewise
	ctx     context.Context
	inbox   chan func() // what other goroutines want done
	failure chan error  // ends the daemon

	links       *ipv6.PacketConn
	ports       map[int]*port
	keys        *agent.LinkKeys
	neighbours  *agent.Neighbours
	told        *apiv1.Neighbours // reported last in this session
	relay       *relay
	controllers *api.Controllers    // for every goroutine
	stream      *agent.Router       // likewise
	credentials *member.Credentials // likewise

	tunnels *tunnels

	forwarding forwarding // before us
	routes     *routes
	resolver   *router.Resolver // the data plane; nil at a network router whose kernel cannot have it
	prober     *prober          // nil before the first Joined

	gauges     gauges
	session    *agent.Session // nil while there is none
	space      sid.Space
	locator    sid.Locator
	bootID     string
	generation uint64
	naming     plan.Naming
	refused    []error // of the snapshot under way: what of it was not applied
	complete   bool    // a snapshot has been
	sources    map[plan.Source]bool
	settled    bool // it is known at which ports routers are
	filter     bool // by sources, as the last snapshot said
	hosts      *agent.Hosts
	probeRules probeRules
}

// Run is the daemon. It returns when ctx ends, after everything that it put into the kernel is gone
// again, or with an error when it cannot begin.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys := agent.NewLinkKeys()
	d := &daemon{cfg: cfg, log: log, ctx: ctx, controllers: api.NewControllers(cfg.Controllers),
		inbox: make(chan func(), 256), failure: make(chan error, 1),
		ports: map[int]*port{}, keys: keys, neighbours: configured(cfg.Name, keys, cfg.Links), hosts: agent.NewHosts(), sources: map[plan.Source]bool{}}
	d.troubled(errors.New("not reached yet"))
	d.verdict = verdict.New(d.facts)
	d.credentials = &member.Credentials{Directory: trust.Directory(cfg.Credentials)}
	alone, err := api.Alone("routerd")
	if err != nil {
		return err
	}
	defer alone.Close()
	listener, err := api.Listen("unix:" + cfg.Socket)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := d.open(); err != nil {
		return errors.Join(err, d.close())
	}
	watch := d.metrics()
	if cfg.Metrics != "" {
		l, err := api.Listen(cfg.Metrics)
		if err != nil {
			return errors.Join(fmt.Errorf("metrics: %w", err), d.close())
		}
		go api.Serve(ctx, watch, l) //nolint:errcheck // its failure is no reason to stop routing
	}
	log.Info("router", "name", cfg.Name, "service", cfg.Service, "controller", strings.Join(cfg.Controllers, ","), "socket", cfg.Socket)
	d.missPorts()
	go d.hear()
	d.stream = &agent.Router{Controllers: d.controllers, Credentials: d.credentials, Log: log, Call: d.call, Join: d.join, Joined: d.joined, Rules: d.apply, Order: d.order, Parted: d.parted,
		Health: d.troubled}
	served := make(chan error, 1)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		served <- api.Serve(ctx, d.handler(watch), listener)
	}()
	go d.stream.Converse(ctx)
	go d.stream.Credentials.Keep(ctx, cfg.KeyFor, log, func(ctx context.Context) error {
		_, err := d.stream.Rotate(ctx)
		return err
	})
	obs.TellManager("READY=1")
	err = d.loop(served)
	cancel()
	d.cfg.Keep = d.cfg.Keep || errors.Is(context.Cause(ctx), api.ErrHandOver)
	err = errors.Join(err, d.close())
	<-closed // the socket is gone, and not that of the next daemon
	return err
}

// open sets up all that can fail at the start.
func (d *daemon) open() (err error) {
	d.bootID = bootID()
	if d.forwarding, err = forward(forwardingFile(d.cfg.Socket)); err != nil {
		return err
	}
	if d.routes, err = openRoutes(); err != nil {
		return err
	}
	if d.links, err = openLinks(); err != nil {
		return err
	}
	if d.relay, err = newRelay(d.ctx, d.controllers, d.log); err != nil {
		return fmt.Errorf("relay of the control channel: %w", err)
	}
	switch err := d.openResolver(); {
	case err == nil:
	case d.cfg.Service:
		return err
	default:
		d.log.Warn("flows to hosts that leave this router for another are not sent after them", "error", err)
	}
	if err := d.openTunnels(); err != nil {
		return err
	}
	if err := d.watchAddresses(); err != nil {
		return err
	}
	return d.watchLinks()
}

// openResolver loads the data plane, or adopts it.
func (d *daemon) openResolver() (err error) {
	if err := features.Missing("a router's data plane", features.Probe(), func(f features.Feature) bool { return f.Router }); err != nil {
		return err
	}
	if err := bpffs.Mount(d.cfg.BPFFS); err != nil {
		return err
	}
	unlock, err := bpffs.Lock(d.cfg.BPFFS)
	if err != nil {
		return err
	}
	defer unlock()
	if err := router.Sweep(filepath.Join(d.cfg.BPFFS, "router-*")); err != nil {
		d.log.Warn("remove what routers that are gone have left", "error", err)
	}
	pin, err := d.pinDir()
	if err != nil {
		return err
	}
	if d.resolver, err = router.Open(router.Config{Pin: pin, Plain: !d.cfg.Service, NoTCX: d.cfg.NoTCX}); err != nil {
		return err
	}
	d.settled = d.resolver.Filters()
	d.generation, d.locator, d.space.AS = d.resolver.Generation(), d.resolver.Locator(), d.resolver.AS()
	if d.resolver.Adopted() {
		u, _ := d.resolver.Usage()
		d.log.Info("took over the rules of an earlier process", "generation", d.generation, "services", u.Services, "instances", u.Instances)
	}
	return nil
}

// pinDir is this network namespace's own place for pins.
func (d *daemon) pinDir() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
		return "", err
	}
	return filepath.Join(d.cfg.BPFFS, fmt.Sprintf("router-%d", st.Ino)), nil
}

// loop does what others post, and what is due each interval.
func (d *daemon) loop(served <-chan error) error {
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	for {
		select {
		case f := <-d.inbox:
			f()
		case <-tick.C:
			d.tick()
		case err := <-d.failure:
			return err
		case err := <-served:
			if d.ctx.Err() == nil {
				return fmt.Errorf("status API: %w", err)
			}
			return nil
		case <-d.ctx.Done():
			return nil
		}
	}
}

func (d *daemon) tick() {
	if d.resolver != nil {
		if err := d.resolver.RenewSilent(); err != nil {
			d.log.Error("first packets may go to hosts that do not answer", "error", err)
		}
	}
	for _, p := range d.ports {
		d.greet(p.name)
	}
	fell := d.neighbours.Tick()
	for _, p := range d.ports {
		d.proveAll(p)
	}
	if fell {
		d.tellNeighbours()
	}
	d.tellCounters()
	d.measure()
}

// post hands f to the loop; after the end it is dropped.
func (d *daemon) post(f func()) {
	select {
	case d.inbox <- f:
	case <-d.ctx.Done():
	}
}

// call is post, and waits until the loop has done it; false after the end.
func (d *daemon) call(f func()) bool {
	done := make(chan struct{})
	d.post(func() { f(); close(done) })
	select {
	case <-done:
		return true
	case <-d.ctx.Done():
		return false
	}
}

// fail ends the daemon.
func (d *daemon) fail(err error) {
	select {
	case d.failure <- err:
	default:
	}
}

// close gives everything back, and removes from the kernel what we put there.
func (d *daemon) close() error {
	var errs []error
	if d.prober != nil {
		d.prober.Close()
	}
	if d.links != nil {
		errs = append(errs, d.links.Close())
	}
	if d.relay != nil {
		d.relay.listener.Close()
		d.relay.Wait()
	}
	if d.routes != nil && !d.cfg.Keep {
		errs = append(errs, d.routes.clear())
		if d.space.AS.IsValid() {
			errs = append(errs, setOwn(d.space, 0), routeOwn(0))
		}
		d.forwarding.restore()
	}
	errs = append(errs, d.tunnels.close(d.cfg.Keep))
	if d.resolver != nil {
		errs = append(errs, d.resolver.Close(d.cfg.Keep), bpffs.Release(d.cfg.BPFFS))
	}
	return errors.Join(errs...)
}
