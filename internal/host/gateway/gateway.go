package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// A state is how far a gateway is on its way out.
type state int

const (
	serving state = iota
	leaving       // says so to who asks for its health, and takes what comes
	closed        // takes nothing; flows that are there go on
)

func (s state) String() string { return [...]string{"serving", "leaving", "drained"}[s] }

// A Gateway is one process's. Its loop owns what has no lock.
type Gateway struct {
	cfg    atomic.Pointer[Config]
	log    *slog.Logger
	ctx    context.Context // ends when nothing is waited for any more
	end    context.CancelFunc
	began  time.Time
	names  *book
	room   *room
	crowd  *crowd
	flows  sync.WaitGroup // goroutines of flows
	dialed obs.Histogram
	health obs.Health
	grudge grudge

	asks     chan func() // run by the loop
	state    state
	exiting  bool // no way back: a signal came, or another gateway took over
	timer    <-chan time.Time
	empty    <-chan struct{} // closed when the last flow has ended
	mu       sync.Mutex      // of doors and former, which the loop changes and others read
	doors    []*door
	former   []*door // closed; their flows may live
	closeAPI func()
}

// Run runs a gateway until ctx ends or it is told to leave, and its flows have ended or are out of time.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	g := newGateway(cfg, log)
	defer g.end()
	if err := g.begin(); err != nil {
		return err
	}
	defer func() { g.closeAPI() }()
	obs.TellManager("READY=1", fmt.Sprintf("MAINPID=%d", os.Getpid()))
	g.report("gateway.start", fmt.Sprintf("a gateway for %s", g.targets()))
	return g.loop(ctx, watchSignals())
}

func newGateway(cfg Config, log *slog.Logger) *Gateway {
	g := &Gateway{
		log: log, began: time.Now(), asks: make(chan func()), closeAPI: func() {},
		names: newBook(&scaffold.Host{Daemon: cfg.Daemon}),
		room:  newRoom(cfg.room()),
		crowd: newCrowd(cfg.PerClient),
	}
	g.ctx, g.end = context.WithCancel(context.Background())
	g.cfg.Store(&cfg)
	g.grudge.log = log
	return g
}

// begin opens everything: at first, or in the place of another gateway.
func (g *Gateway) begin() error {
	cfg := g.cfg.Load()
	var had *inherited
	if cfg.TakeOver {
		var err error
		if had, err = takeOver(cfg.Socket); err != nil {
			return err
		}
		defer had.close()
	}
	if had == nil {
		if err := g.serveAPI(); err != nil {
			return err
		}
	}
	doors, err := g.openAll(cfg.listens, had)
	if err != nil {
		g.closeAPI()
		return err
	}
	if had != nil {
		if err := g.follow(doors, had); err != nil {
			return err
		}
	}
	g.admit(doors)
	for _, l := range cfg.listens {
		g.log.Info("listening", "at", l.At(), "name", l.Target())
	}
	return nil
}

// follow takes the place of the gateway before.
func (g *Gateway) follow(doors []*door, had *inherited) error {
	if err := had.ready(); err != nil {
		shut(doors)
		return fmt.Errorf("take over from the gateway at %s: %w", g.cfg.Load().Socket, err)
	}
	for _, d := range doors {
		if p, ok := d.face.(*packets); ok {
			for _, s := range had.sessions(d.at) {
				p.adopt(s)
			}
		}
	}
	return g.serveAPI()
}

// openAll opens the sockets of listeners: all, or none and an error.
func (g *Gateway) openAll(listens []Listen, had *inherited) (doors []*door, err error) {
	for _, l := range listens {
		for _, at := range l.sockets() {
			d, err := g.open(at, l, had)
			if err != nil {
				shut(doors)
				return nil, err
			}
			doors = append(doors, d)
		}
	}
	return doors, nil
}

// shut closes doors that nobody came in by.
func shut(doors []*door) {
	for _, d := range doors {
		d.hand()
	}
}

// admit lets clients in by new doors.
func (g *Gateway) admit(doors []*door) {
	g.mu.Lock()
	g.doors = append(g.doors, doors...)
	g.mu.Unlock()
	for _, d := range doors {
		if _, err := g.names.find(g.ctx, d.want.Load().Service); err != nil {
			g.complain("look for "+d.want.Load().Service, err)
		}
		d.start()
	}
}

// flowCount is how many flows there are: places that doors keep for who comes next are none.
func (g *Gateway) flowCount() int {
	n := g.room.count()
	for _, d := range g.all() {
		n -= int(d.expects.Load())
	}
	return max(0, n)
}

// all are the doors that have flows.
func (g *Gateway) all() []*door {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append(append([]*door{}, g.doors...), g.former...)
}

// targets are the listeners, for people: the first of many.
func (g *Gateway) targets() string {
	const most = 3
	var all []string
	for _, l := range g.cfg.Load().listens {
		all = append(all, l.At()+" to "+l.Target())
	}
	if len(all) > most {
		all = append(all[:most], "...")
	}
	return strings.Join(all, ", ")
}

// call runs f in the loop.
func (g *Gateway) call(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case g.asks <- func() { done <- f() }:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-g.ctx.Done():
		return errors.New("the gateway has ended")
	}
}

func (g *Gateway) complain(what string, err error) {
	if err != nil && !errors.Is(err, net.ErrClosed) {
		g.grudge.say(what, err)
	}
}

// A grudge logs trouble that comes again and again once in a while.
type grudge struct {
	log *slog.Logger
	mu  sync.Mutex
	had map[string]*complaint
}

type complaint struct {
	at    time.Time
	again int
}

// How often one thing is complained about, and about how many things at once.
const (
	grudgeEvery = 10 * time.Second
	maxGrudges  = 1024
)

func (g *grudge) say(what string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.had[what]
	if c != nil && time.Since(c.at) < grudgeEvery {
		c.again++
		return
	}
	if c == nil {
		if len(g.had) >= maxGrudges || g.had == nil {
			g.had = map[string]*complaint{}
		}
		c = &complaint{}
		g.had[what] = c
	}
	g.log.Warn(what, "error", cause(err), "times_since", c.again+1)
	c.at, c.again = time.Now(), 0
}
