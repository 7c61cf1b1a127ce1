package hostd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/guests"
	"scaffold.dev/scaffold/internal/host/joining"
	"scaffold.dev/scaffold/internal/host/keys"
	"scaffold.dev/scaffold/internal/host/mobility"
	"scaffold.dev/scaffold/internal/host/naming"
	"scaffold.dev/scaffold/internal/host/permits"
	"scaffold.dev/scaffold/internal/host/places"
	"scaffold.dev/scaffold/internal/host/registry"
	"scaffold.dev/scaffold/internal/host/routing"
	"scaffold.dev/scaffold/internal/host/sweep"
	"scaffold.dev/scaffold/internal/host/tunnels"
	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/host/uplinks"
	"scaffold.dev/scaffold/internal/operate/obs"
	judged "scaffold.dev/scaffold/internal/operate/verdict"
	"scaffold.dev/scaffold/internal/trust"
)

// leaveWait is how long the controller may take to withdraw us.
const leaveWait = 2 * time.Second

// A daemon is the state of the loop. Fields are the loop's own unless they say otherwise.
type daemon struct {
	loop
	cfg         Config
	log         *slog.Logger
	store       store
	keys        keys.Keys           // for every goroutine
	rotating    sync.Mutex          // one new key at a time
	identity    uint64              // low half of the host's own address
	credentials *member.Credentials // what makes it a member of a network with keys; for every goroutine
	bootID      string
	netns       uint64
	features    []*apiv1.Feature
	metrics     metrics       // for every goroutine
	verdict     *judged.Watch // likewise: what is wrong with this host

	uplinks *uplinks.Uplinks // in the order of preference
	places  *places.Places   // where the host is
	joining *joining.Joining // and how it gets there
	permits *permits.Permits

	challenge []byte // of the session: what is signed in it quotes it
	nonlocal  string // what the sysctl was before us
	demux     string // likewise, beside a router

	edge  *host.Edge
	flows *sweep.Sweeper // of edge
	hooks *sockets.Hooks
	socks *sockets.Host
	diag  *sockets.Diag

	tunnels *tunnels.Tunnels // nil before they are kept
	apis    sync.WaitGroup

	control *control
	// controllers are nil where the first-hop router leads to the one that leads. For every goroutine.
	controllers *api.Controllers
	names       *naming.Names
	serving     *registry.Registry
	guests      *guests.Guests
	sessions    *mobility.Sessions
	journal     func(session.Entry) // nil without one
	refusals    *refusals
	load        loadMeter
	readers     chan struct{} // closed when the goroutine that reads the hooks has ended
}

// Run is the daemon. It returns when ctx ends, after the host has left the network in good order, or
// with an error when it cannot begin.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	d := &daemon{cfg: cfg, log: log, loop: loop{inbox: make(chan func(), 1024)}, metrics: newMetrics()}
	d.refusals = newRefusals(d)
	if len(cfg.Controllers) > 0 {
		d.controllers = api.NewControllers(cfg.Controllers)
	}
	inner, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.ctx = inner
	d.verdict = judged.New(d.facts)
	alone, err := api.Alone("hostd")
	if err != nil {
		return err
	}
	defer alone.Close()
	defer func() { // the sockets are gone before another daemon may have its own
		cancel()
		d.drainUntil(closedBy(&d.apis))
	}()
	if err := d.start(ctx); err != nil {
		return errors.Join(err, d.undo())
	}
	obs.TellManager("READY=1")
	d.run(ctx)
	d.cfg.Keep = d.cfg.Keep || errors.Is(context.Cause(ctx), api.ErrHandOver)
	return d.shutDown()
}

// start sets up all that needs no network.
func (d *daemon) start(ctx context.Context) (err error) {
	if d.store, err = openStore(d.cfg.StateDir); err != nil {
		return err
	}
	d.credentials = &member.Credentials{Directory: trust.Directory(d.cfg.StateDir)}
	if err := d.openKeys(); err != nil {
		return fmt.Errorf("the host's: %w", err)
	}
	if d.netns, err = netnsInode(); err != nil {
		return err
	}
	if err := d.openJournal(); err != nil {
		return err
	}
	d.bootID = bootID()
	if d.features, err = probeFeatures(d.log); err != nil {
		return err
	}
	if err := d.setUpNamespace(); err != nil {
		return err
	}
	d.permits = newPermits(d)
	d.places = newPlaces(d)
	d.serving = newRegistry(d)
	d.guests = newGuests(d)
	d.names = d.newNames()
	d.sessions = d.newSessions()
	d.places.Flows = d.sessions
	d.control = newControl(d)
	if err := d.serveAPI(ctx); err != nil {
		return err
	}
	if err := d.layOwn(); err != nil {
		return err
	}
	if err := d.cfg.findUplinks(); err != nil {
		return err
	}
	d.findUplinks()
	if err := d.openTunnels(); err != nil {
		return err
	}
	if err := routing.WatchLinks(d.ctx, func(down map[int]bool) { d.post(func() { d.uplinks.Changed(down) }) }); err != nil {
		return err
	}
	if err := routing.WatchRoutes(d.ctx, func() { d.post(d.places.Restore) }); err != nil {
		return err
	}
	d.permits.Take(d.permits.Find(time.Now()))
	go d.permits.Watch(d.ctx)
	go d.credentials.Keep(d.ctx, d.cfg.KeyFor, d.log, func(ctx context.Context) error {
		_, err := d.rotateKey(ctx)
		return err
	})
	go d.control.run(d.ctx)
	d.resume()
	d.uplinks.Changed(nil)
	d.places.Restore()
	d.names.Serve()
	d.tunnels.Cabled(d.uplinks.Cabled(d.places.Placed))
	d.tunnels.Keep(d.ctx)
	return nil
}

// setUpNamespace makes the host's namespace fit for service addresses, and opens what is pinned.
func (d *daemon) setUpNamespace() (err error) {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("bring up lo: %w (the host daemon needs root)", err)
	}
	if d.nonlocal, err = routing.AllowNonlocalBind(); err != nil {
		return err
	}
	if err := bpffs.Mount(d.cfg.BPFFS); err != nil {
		return err
	}
	if err := host.CheckPins(d.pin()); err != nil {
		return err
	}
	if d.diag, err = sockets.OpenDiag(); err != nil {
		return err
	}
	if err := host.SweepDead(filepath.Join(d.cfg.BPFFS, "host-*")); err != nil {
		d.log.Warn("remove what hosts that are gone have left", "error", err)
	}
	d.hooks, err = sockets.Open(d.cfg.BPFFS)
	return err
}

// resume goes on where a daemon that was killed left: same locators, same edge, before anyone is asked.
func (d *daemon) resume() {
	r := places.Saved(d.store, d.bootID, d.netns)
	if r == nil {
		return
	}
	d.nonlocal = r.Nonlocal
	if r.EarlyDemux != "" {
		d.demux = r.EarlyDemux
		d.giveBackDemux(!d.cfg.beside)
	}
	d.places.Resume(r)
}

// pin is where the edge of this namespace is pinned.
func (d *daemon) pin() string { return filepath.Join(d.cfg.BPFFS, fmt.Sprintf("host-%d", d.netns)) }

// run does what is posted and what is due until ctx ends.
func (d *daemon) run(ctx context.Context) {
	queues, refusals, sessions := time.NewTimer(registry.QueueIdle), time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer queues.Stop()
	defer refusals.Stop()
	defer sessions.Stop()
	for {
		d.serving.Flush()
		d.sessions.Settle(time.Now())
		d.places.Save()
		d.tunnels.Cabled(d.uplinks.Cabled(d.places.Placed))
		if at := d.sessions.Deadline(); !at.IsZero() {
			sessions.Reset(time.Until(at))
		}
		if at := d.refusals.Deadline(); !at.IsZero() {
			refusals.Reset(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case f := <-d.inbox:
			d.turn(f)
			d.more()
		case <-queues.C:
			queues.Reset(d.serving.LookAtQueues())
		case <-refusals.C:
			d.refusals.expire()
		case <-sessions.C: // settle does it
		}
	}
}

// undo takes back what a start did that failed. What a daemon that was killed left stays for the next.
func (d *daemon) undo() error {
	if _, err := os.Stat(d.pin()); err != nil && d.nonlocal != "" {
		routing.RestoreNonlocalBind(d.nonlocal)
		d.giveBackDemux(true)
	}
	return d.stop(false)
}

// shutDown leaves the network: first nothing new comes in, then the network is told, then what is here
// is removed. With Keep all stays for the next daemon.
func (d *daemon) shutDown() error {
	if d.cfg.Keep {
		d.log.Info("ending; the data path stays")
		d.guests.LetGo()
		d.drainUntil(d.tunnels.End())
		d.stop(true) //nolint:errcheck // what stays is the next daemon's
		return nil
	}
	d.log.Info("leaving the network")
	d.serving.WithdrawAll()
	d.guests.LowerAll()
	d.control.leave(leaveWait, d.inbox)
	d.places.Clear()
	if d.nonlocal != "" {
		routing.RestoreNonlocalBind(d.nonlocal)
	}
	d.giveBackDemux(true)
	places.Forget(d.store)
	d.drainUntil(d.tunnels.End())
	err := errors.Join(d.tunnels.Remove(), d.stop(false))
	if d.cfg.beside {
		err = errors.Join(err, underlay.RemoveOwn())
	}
	return err
}

// stop ends all goroutines and closes what is open.
func (d *daemon) stop(keep bool) error {
	var errs []error
	d.flows.Stop()
	if d.edge != nil {
		errs = append(errs, d.edge.Close(keep))
	}
	if d.socks != nil {
		d.socks.Interrupt() //nolint:errcheck // its readers are waited for, at most a while
		d.drainUntil(d.readers)
		errs = append(errs, d.socks.Close(keep))
	}
	if d.hooks != nil {
		errs = append(errs, d.hooks.Close())
	}
	if !keep {
		errs = append(errs, bpffs.Release(d.cfg.BPFFS))
	}
	if d.names != nil {
		d.names.Close()
	}
	return errors.Join(errs...)
}
