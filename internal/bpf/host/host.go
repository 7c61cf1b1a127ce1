package host

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// Config says where a host's edge stands and how much it may remember.
type Config struct {
	Space    sid.Space
	Identity netip.Addr // the host's stable client address; never on the wire
	Pin      string     // directory on a bpffs that outlives the process; "" pins nothing
	MaxFlows uint32     // 0: 262,144
	Classic  bool       // clsact filters although the kernel has tcx links
}

const defaultMaxFlows = 1 << 18

// An Edge is one host's edge: maps, programs and the uplinks they stand on. It belongs to the network
// namespace of the thread that opened it. Methods may be called from any goroutine, those that touch
// interfaces (Attach, Detach, Inject) only from a thread in that namespace.
type Edge struct {
	cfg  Config
	maps edgeMaps
	ring *ringbuf.Reader

	secret [2]uint64 // that of the pinned configuration
	peers  *peers    // its census belongs to Sweep

	beaten time.Time // the last heartbeat of ReadEvent, whose only caller has it

	sweeping sync.Mutex // guards what follows; taken before all others
	sweeps   uint

	guestLoad sync.Mutex    // guards forGuests; may be taken after mu
	forGuests *ebpf.Program // nil before the first guest

	mu       sync.Mutex          // guards what follows
	programs map[uint32]programs // by length of the link's header
	uplinks  map[int]*attachment
	sockets  injectSockets
	device   string // that they are bound to, BindTo
	adopted  bool
	access   map[sid.Suffix]resolve.AccessList // what the map of that name has
	guests   map[uint16]*guestEnd
}

// Open loads the edge, or adopts what is pinned under cfg.Pin: flows go on, links run the new programs.
func Open(cfg Config) (*Edge, error) {
	if err := cfg.Space.Validate(); err != nil {
		return nil, fmt.Errorf("host edge: %w", err)
	}
	if cfg.MaxFlows == 0 {
		cfg.MaxFlows = defaultMaxFlows
	}
	e := &Edge{cfg: cfg, programs: map[uint32]programs{}, uplinks: map[int]*attachment{}, sockets: noSockets, access: map[sid.Suffix]resolve.AccessList{}, guests: map[uint16]*guestEnd{}}
	if err := e.open(); err != nil {
		e.Close(true)
		return nil, err
	}
	return e, nil
}

func (e *Edge) open() error {
	if err := e.load(); err != nil {
		return err
	}
	ring, err := ringbuf.NewReader(e.maps.Events)
	if err != nil {
		return fmt.Errorf("host edge: open the event ring: %w", err)
	}
	e.ring = ring
	if err := e.readAccess(); err != nil {
		return err
	}
	return e.adoptLinks()
}

// Adopted reports whether Open found a running edge: its flows are older than this process.
func (e *Edge) Adopted() bool { return e.adopted }

// Close ends the edge. With keep, everything that is pinned stays and goes on working without us;
// without, links and maps vanish and bound flows with them.
func (e *Edge) Close(keep bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var first error
	if e.ring != nil {
		first = e.ring.Close()
	}
	for ifindex, a := range e.uplinks {
		if err := a.close(keep); err != nil && first == nil {
			first = fmt.Errorf("host edge: leave interface %d: %w", ifindex, err)
		}
	}
	clear(e.uplinks)
	for number, g := range e.guests {
		g.sockets.close()
		if err := g.close(keep); err != nil && first == nil {
			first = fmt.Errorf("host edge: leave guest %d: %w", number, err)
		}
	}
	clear(e.guests)
	for _, p := range e.programs {
		p.Close()
	}
	clear(e.programs)
	e.forGuests.Close() // nil is fine, too
	if !keep {
		e.unpin()
	}
	e.peers.close()
	e.maps.Close()
	e.sockets.close()
	return first
}
