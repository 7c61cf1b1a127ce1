package hostd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/agent"
	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

// leaveWait is how long the controller may take to withdraw us.
const leaveWait = 2 * time.Second

// A daemon is the state of the loop. Fields are the loop's own unless they say otherwise.
type daemon struct {
	cfg         Config
	log         *slog.Logger
	store       store
	keys        keys               // for every goroutine
	rotating    sync.Mutex         // one new key at a time
	identity    uint64             // low half of the host's own address
	credentials *agent.Credentials // what makes it a member of a network with keys; for every goroutine
	bootID      string
	netns       uint64
	features    []*apiv1.Feature
	inbox       chan func() // what other goroutines want done
	held        []func()    // taken from inbox and not done yet
	metrics     metrics     // for every goroutine

	ctx      context.Context // of everything but the farewell
	uplinks  []*uplink       // in the order of preference
	home     *home           // nil until the host was told where it is
	places   []place         // where it is now, in the order of preference
	former   []former        // locators that it had, the oldest first
	told     sid.Locator     // that others are sent to
	unsaved  bool            // home, places or former changed
	diskFull bool            // or something else keeps them from being saved
	retries  bool            // saving is tried again
	serial   uint32          // of the last bid
	permits  *permits

	challenge []byte // of the session: what is signed in it quotes it
	kernel    kernel
	nonlocal  string // what the sysctl was before us

	edge     *host.Edge
	flows    *keeper // of edge
	hooks    *sockets.Hooks
	socks    *sockets.Host
	catching sync.Mutex    // of who waits for caught
	caught   chan struct{} // hears when a reader of sockets has caught up; nil: nobody waits
	diag     *sockets.Diag

	lead       lead  // whether a cable leads to the network; for every goroutine
	guard      guard // of tunnels
	tunnelers  sync.WaitGroup
	apis       sync.WaitGroup
	endTunnels context.CancelFunc // nil before they are kept

	control *control
	going   string // the controller that is gone to
	// controllers are nil where the first-hop router leads to the one that leads. For every goroutine.
	controllers *api.Controllers
	names       *names
	serving     *registry
	guests      *guests
	sessions    mobility
	journal     func(session.Entry) // nil without one
	refusals    *host.Refusals
	load        loadMeter
	readers     chan struct{} // closed when the goroutine that reads the hooks has ended
}

// Run is the daemon. It returns when ctx ends, after the host has left the network in good order, or
// with an error when it cannot begin.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	d := &daemon{cfg: cfg, log: log, inbox: make(chan func(), 1024), metrics: newMetrics(), refusals: host.NewRefusals(), kernel: kernel{log: log}}
	if len(cfg.Controllers) > 0 {
		d.controllers = api.NewControllers(cfg.Controllers)
		d.going, _ = d.controllers.Next()
	}
	inner, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.ctx = inner
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
	d.loop(ctx)
	d.cfg.Keep = d.cfg.Keep || errors.Is(context.Cause(ctx), api.ErrHandOver)
	return d.farewell()
}

// start sets up all that needs no network.
func (d *daemon) start(ctx context.Context) (err error) {
	if d.store, err = openStore(d.cfg.StateDir); err != nil {
		return err
	}
	d.credentials = &agent.Credentials{Directory: trust.Directory(d.cfg.StateDir)}
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
	d.serving = newRegistry(d)
	d.guests = newGuests(d)
	d.permits = newPermits(d)
	d.names = newNames(d)
	d.sessions = newSessions(d)
	d.control = newControl(d)
	if err := d.serveAPI(ctx); err != nil {
		return err
	}
	if err := d.cfg.findUplinks(); err != nil {
		return err
	}
	for _, name := range d.cfg.Uplinks {
		d.uplinks = append(d.uplinks, &uplink{name: name})
	}
	if err := d.openTunnels(); err != nil {
		return err
	}
	if err := watchLinks(d.ctx, func(down map[int]bool) { d.post(func() { d.linksChanged(down) }) }); err != nil {
		return err
	}
	if err := watchRoutes(d.ctx, func() { d.post(d.kernelChanged) }); err != nil {
		return err
	}
	d.permits.take(d.findPermits(time.Now()))
	go d.watchPermits()
	go d.credentials.Keep(d.ctx, d.cfg.KeyFor, d.log, func(ctx context.Context) error {
		_, err := d.rotateKey(ctx)
		return err
	})
	go d.control.run(d.ctx)
	d.resume()
	d.linksChanged(nil)
	d.kernelChanged()
	d.names.serve()
	d.lead.set(d.cabled())
	d.keepTunnels()
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
	if d.nonlocal, err = allowNonlocalBind(); err != nil {
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
	r := d.store.places(d.bootID, d.netns)
	if r == nil {
		return
	}
	d.nonlocal = r.Nonlocal
	r.Places = slices.DeleteFunc(r.Places, func(p place) bool { return d.uplink(p.Uplink) == nil })
	for i := range r.Places {
		d.resumeAt(&r.Places[i])
	}
	d.former = r.Former
	places := d.inOrder(r.Places)
	if err := d.settle(&r.home, places); err != nil {
		d.log.Warn("cannot take up the last place now; its flows wait", "error", err)
		if err := d.lieInWait(&r.home, places); err != nil {
			d.log.Error("cannot take up the flows of before", "error", err)
		}
		return
	}
	for _, f := range d.former {
		d.graceFrom(f.Left)
	}
	for _, p := range d.places {
		d.log.Info("took up the host's last place", "locator", p.Locator, "uplink", p.Uplink, "adopted", d.edge.Adopted())
	}
}

// lieInWait takes up the flows of places that lead nowhere now: they move with the host when it gets another.
func (d *daemon) lieInWait(h *home, places []place) error {
	if err := d.openEdge(h); err != nil {
		return err
	}
	for i := range places {
		places[i].link = lost
		if err := d.edge.SetUplink(places[i].Index, host.Uplink{}); err != nil {
			return err
		}
	}
	d.home, d.places = h, places
	return nil
}

// resumeAt looks whether the uplink is still there, and takes its router for the one of before until one
// greets.
func (d *daemon) resumeAt(p *place) {
	u := d.uplink(p.Uplink)
	if !u.look() || p.Index != 0 && p.Index != u.index {
		p.link = lost
		return
	}
	p.Index, u.router, u.before = u.index, p.Router, p.At
}

// pin is where the edge of this namespace is pinned.
func (d *daemon) pin() string { return filepath.Join(d.cfg.BPFFS, fmt.Sprintf("host-%d", d.netns)) }

// post hands f to the loop.
func (d *daemon) post(f func()) {
	select {
	case d.inbox <- f:
	case <-d.ctx.Done():
	}
}

// call runs f in the loop and waits for it; false means that the daemon is leaving.
func (d *daemon) call(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	d.post(func() { f(); close(done) })
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-d.ctx.Done():
	}
	return false
}

// loop does what is posted and what is due until ctx ends.
func (d *daemon) loop(ctx context.Context) {
	queues, refusals, sessions := time.NewTimer(queueIdle), time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer queues.Stop()
	defer refusals.Stop()
	defer sessions.Stop()
	for {
		d.serving.flush()
		d.sessions.settle(time.Now())
		d.save()
		d.lead.set(d.cabled())
		if at := d.sessions.deadline(); !at.IsZero() {
			sessions.Reset(time.Until(at))
		}
		if at := d.refusals.Deadline(); !at.IsZero() {
			refusals.Reset(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case f := <-d.inbox:
			f()
			d.more()
		case <-queues.C:
			queues.Reset(d.lookAtQueues())
		case <-refusals.C:
			d.refusals.Expire(time.Now())
			d.answerRefusals()
		case <-sessions.C: // settle does it
		}
	}
}

// more does what else is posted already, so that a burst of events makes one report.
func (d *daemon) more() {
	for len(d.held) > 0 {
		f := d.held[0]
		d.held = d.held[1:]
		f()
	}
	for range cap(d.inbox) {
		select {
		case f := <-d.inbox:
			f()
		default:
			return
		}
	}
}

// undo takes back what a start did that failed. What a daemon that was killed left stays for the next.
func (d *daemon) undo() error {
	if _, err := os.Stat(d.pin()); err != nil && d.nonlocal != "" {
		os.WriteFile(nonlocalBind, []byte(d.nonlocal), 0)
	}
	return d.stop(false)
}

// farewell leaves the network: first nothing new comes in, then the network is told, then what is here
// is removed. With Keep all stays for the next daemon.
func (d *daemon) farewell() error {
	if d.cfg.Keep {
		d.log.Info("ending; the data path stays")
		d.guests.letGo()
		d.closeTunnels(true) //nolint:errcheck // nothing is removed
		d.stop(true)
		return nil
	}
	d.log.Info("leaving the network")
	d.serving.withdrawAll()
	d.guests.lowerAll()
	d.control.leave(leaveWait, d.inbox)
	d.kernel.remove()
	if d.nonlocal != "" {
		os.WriteFile(nonlocalBind, []byte(d.nonlocal), 0)
	}
	d.store.forgetPlaces()
	return errors.Join(d.closeTunnels(false), d.stop(false))
}

// stop ends all goroutines and closes what is open.
func (d *daemon) stop(keep bool) error {
	var errs []error
	d.flows.stop()
	if d.edge != nil {
		errs = append(errs, d.edge.Close(keep))
	}
	if d.socks != nil {
		d.socks.Interrupt()
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
		d.names.close()
	}
	return errors.Join(errs...)
}

// waitFor waits in the loop for a goroutine that posts, and keeps what is posted meanwhile for later.
func (d *daemon) waitFor(done <-chan struct{}) {
	for {
		select {
		case f := <-d.inbox:
			d.held = append(d.held, f)
		case <-done:
			return
		}
	}
}

// drainUntil lets goroutines that post get rid of it.
func (d *daemon) drainUntil(done <-chan struct{}) {
	for {
		select {
		case <-d.inbox:
		case <-done:
			return
		}
	}
}
