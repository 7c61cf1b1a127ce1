package ends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/bpf/divert"
)

// sweepEvery is how often it is looked which sessions have no socket any more. A look lists the sockets of the namespace.
const sweepEvery = 5 * time.Second

// A Lane says which connections are the agent's.
type Lane = divert.Lane

// Config says where an agent stands and what it may hold. Zero values are defaults.
type Config struct {
	Ports []string      // names of the interfaces by which connections come and go
	Mark  uint32        // of packets for the agent's sockets; nobody else in the namespace uses it
	Table int           // of routes, in which every address is local; nobody else's either
	Held  int           // SYNs that wait for a decision at a time; more go on unboosted. 0: 1024
	Hold  time.Duration // after which a SYN that nobody decided about goes on. 0: 10 s
	BPFFS string        // where programs and tables are pinned; "": /run/scaffold/bpf
	NoTCX bool          // attach by clsact filters, as kernels before 6.6 need it
	// Carries is how many connections a process before this one has left: where there are any Open takes nothing away that they
	// need, also where it fails.
	Carries int
}

// Ends are the end sockets of an agent. Methods may be called by several goroutines, SetLanes by one.
type Ends struct {
	kernel    *divert.Diverter
	hold      time.Duration
	listeners []*net.TCPListener
	wires     *wires
	ears      ears
	syns      chan *SYN
	done      chan struct{}
	all       sync.WaitGroup
	once      sync.Once

	mu       sync.Mutex
	waiting  map[pair]chan *net.TCPConn // who waits for the connection of a SYN that was accepted
	pending  map[*SYN]bool              // undecided
	unproven uint64                     // SYNs with a wrong checksum
	sweeping error                      // of the last sweep
	stops    []uint32                   // as it was read last
}

// A pair is a connection as its socket here sees it.
type pair struct{ local, remote netip.AddrPort }

// Open puts the agent at its ports. Until the first Beat, and without lanes, every connection goes on.
func Open(cfg Config) (*Ends, error) {
	ports, err := portsOf(cfg.Ports)
	if err != nil {
		return nil, err
	}
	listeners, err := listen()
	if err != nil {
		return nil, err
	}
	held := cfg.Held
	if held == 0 {
		held = divert.DefaultHeld
	}
	e := &Ends{listeners: listeners, hold: cfg.Hold, syns: make(chan *SYN, held), done: make(chan struct{}),
		waiting: map[pair]chan *net.TCPConn{}, pending: map[*SYN]bool{}}
	if e.hold == 0 {
		e.hold = divert.DefaultHold
	}
	e.kernel, err = divert.Open(divert.Config{Ports: ports, Listener: portOf(listeners[0]), Mark: cfg.Mark, Table: cfg.Table,
		Held: cfg.Held, Hold: e.hold, BPFFS: cfg.BPFFS, NoTCX: cfg.NoTCX, Carries: cfg.Carries})
	if err == nil {
		e.wires, err = openWires(e.kernel.Mark())
	}
	if err != nil {
		end := e.Close
		if cfg.Carries > 0 {
			end = e.Leave
		}
		return nil, errors.Join(err, end())
	}
	e.start()
	return e, nil
}

func portsOf(names []string) (ports []int, err error) {
	for _, name := range names {
		i, err := net.InterfaceByName(name)
		if err != nil {
			var op *net.OpError
			if errors.As(err, &op) {
				err = op.Err // what it was doing, "route ip+net", helps nobody
			}
			return nil, fmt.Errorf("agent's port %q: %w: name one that `ip -br link` lists", name, err)
		}
		ports = append(ports, i.Index)
	}
	return ports, nil
}

func (e *Ends) start() {
	for _, l := range e.listeners {
		e.all.Go(func() { e.accept(l) })
	}
	e.all.Go(e.read)
	e.all.Go(e.sweep)
}

// sweep ends with Close.
func (e *Ends) sweep() {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-e.done:
			return
		case <-t.C:
			err := e.kernel.Sweep()
			e.mu.Lock()
			e.sweeping = err
			e.mu.Unlock()
		}
	}
}

// Stops are the versions of IP, 4 and 6, of which packets that are not the agent's own would end at this machine. Where that cannot
// be read, for want of descriptors, it is what it was before.
func (e *Ends) Stops() []uint32 {
	now, err := e.kernel.Stops()
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.stops = now
	}
	return e.stops
}

// SetLanes replaces all lanes in one step. Connections that are boosted stay so, and others do not begin to be.
func (e *Ends) SetLanes(lanes []Lane) error { return e.kernel.SetLanes(lanes) }

// Beat says that the agent lives. Without one for 200 ms new connections go on unboosted.
func (e *Ends) Beat() error { return e.kernel.Beat() }

// Counters returns how many packets met which fate at the ports, and dropped_checksum, SYNs that were damaged.
func (e *Ends) Counters() (map[string]uint64, error) {
	all, err := e.kernel.Counters()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all["dropped_checksum"] = e.unproven
	return all, e.sweeping
}

// Finished says that all bytes of the stream out of this connection were written, and that the stream ends there: the FIN
// that is to follow may leave.
func (e *Ends) Finished(c *net.TCPConn) error {
	p := pairOf(c)
	return e.kernel.Finish(p.local, p.remote)
}

// Own is what the kernel here said of itself in the SYN or SYN-ACK of a connection; zero where that is not known.
func (e *Ends) Own(c *net.TCPConn) frame.Options {
	p := pairOf(c)
	own, _ := e.kernel.Said(p.local, p.remote)
	return own
}

// Announce sends a whole frame out of the port that has this index now, to whoever is next to it.
func (e *Ends) Announce(ifindex int, frame []byte) error { return e.wires.out(ifindex, frame) }

func pairOf(c *net.TCPConn) pair { return pair{endOf(c.LocalAddr()), endOf(c.RemoteAddr())} }

func endOf(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// Close lets SYNs go on that are held, and takes programs, rules, routes, sysctls and pins back. Connections are closed
// before: what comes for them afterwards goes on to the end hosts, which know nothing of them.
func (e *Ends) Close() error {
	var err error
	e.once.Do(func() { err = e.close((*divert.Diverter).Close) })
	return err
}

// Leave is Close for who has not come to work: what the kernel has of connections stays there for whoever goes on with them.
func (e *Ends) Leave() error {
	var err error
	e.once.Do(func() { err = e.close((*divert.Diverter).Leave) })
	return err
}

func (e *Ends) close(kernel func(*divert.Diverter) error) error {
	close(e.done)
	errs := []error{}
	for s := range e.undecided() {
		s.lapse()
	}
	for _, l := range e.listeners {
		errs = append(errs, l.Close())
	}
	if e.kernel != nil {
		errs = append(errs, e.kernel.Interrupt())
		e.all.Wait()
		errs = append(errs, kernel(e.kernel))
	}
	if e.wires != nil {
		errs = append(errs, e.wires.close())
	}
	return errors.Join(errs...)
}

func (e *Ends) undecided() map[*SYN]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.pending
	e.pending = map[*SYN]bool{}
	return all
}

// ErrClosed is what Next says after Close.
var ErrClosed = divert.ErrClosed

// Next waits for a SYN that is held.
func (e *Ends) Next(ctx context.Context) (*SYN, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.done:
			return nil, ErrClosed
		case s := <-e.syns:
			if e.kernel.Holds(s.held) { // else it was sent again after the limit, or while the agent stood still
				return s, nil
			}
			s.settle()
		}
	}
}
