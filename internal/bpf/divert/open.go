package divert

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/internal/bpf/features"
	"scaffold.dev/scaffold/internal/bpf/ktime"
)

const abi = 2 // DIVERT_ABI

// Stale is for how long an agent is believed to be there without a Beat.
const Stale = 200 * time.Millisecond

// Defaults of a Config. The machine may be a host of the network as well, by whose daemon the marks 0x5caf to 0x5cb1 and the
// tables 23727 to 23729 are used (internal/host/routing, internal/bpf/host/ask.h).
const (
	DefaultMark  = 0x5cb2
	DefaultTable = 23731
	DefaultHeld  = 1024
	DefaultHold  = 10 * time.Second
)

// Config says where an agent stands and what it may hold.
type Config struct {
	Ports    []int         // numbers of interfaces of Ethernet
	Listener uint16        // port of the agent's transparent listeners, at 127.0.0.1 and ::1
	Mark     uint32        // of packets for sockets of the agent; 0: DefaultMark. Nobody else in the namespace uses it
	Table    int           // of routes, in which every address is local; 0: DefaultTable. Nobody else's either
	Held     int           // SYNs that are held at a time; 0: DefaultHeld
	Hold     time.Duration // after which a SYN that nobody decided about goes on; 0: DefaultHold
	BPFFS    string        // where pins are; "": bpffs.Default. It is mounted if need be
	Pin      string        // directory on a bpffs; "": one of the namespace's own, below BPFFS
	NoTCX    bool          // attach by clsact filters, as kernels before 6.6 need it
	// Carries is how many connections a process before this one has left, which this one is to go on with. Where there are any
	// Open takes nothing away: where it fails, all is left to who goes on with them.
	Carries int
}

func (c Config) filled() (Config, error) {
	if c.Mark == 0 {
		c.Mark = DefaultMark
	}
	if c.Table == 0 {
		c.Table = DefaultTable
	}
	if c.Held == 0 {
		c.Held = DefaultHeld
	}
	if c.Hold == 0 {
		c.Hold = DefaultHold
	}
	switch {
	case len(c.Ports) == 0:
		return c, errors.New("no port is given: name the interfaces by which connections come")
	case c.Held < 0 || c.Held > 1<<20:
		return c, fmt.Errorf("%d held SYNs, expected 1 to %d", c.Held, 1<<20)
	case c.Hold < 0:
		return c, fmt.Errorf("a SYN is held for %v, expected more than 0", c.Hold)
	}
	return c, nil
}

// A Diverter is the loaded programs with their maps, rules and routes. Its methods may be called by several goroutines,
// except for SetLanes, Sweep and Close.
type Diverter struct {
	cfg     Config
	objs    divertObjects
	hooks   map[hook]holder
	ring    *ringbuf.Reader
	lanes   lanes
	lock    *os.File
	net     *network
	mounted string // the bpffs that the pins are on, to be released; "": somebody else's
	gone    map[divertEnds]bool
}

// Open loads the programs and puts them at the ports, in the network namespace of the calling thread. What an agent that
// was killed left there is adopted. Until the first Beat every SYN goes on.
func Open(cfg Config) (*Diverter, error) {
	cfg, err := cfg.filled()
	if err == nil {
		err = features.Missing("an agent of boost", features.Diverting(), func(features.Feature) bool { return true })
	}
	if err != nil {
		return nil, fmt.Errorf("agent's ports: %w", err)
	}
	d := &Diverter{cfg: cfg, hooks: map[hook]holder{}, gone: map[divertEnds]bool{}}
	if err := d.open(); err != nil {
		end := d.Close
		if cfg.Carries > 0 {
			end = d.Leave
		}
		return nil, errors.Join(fmt.Errorf("agent's ports: %w", err), end())
	}
	return d, nil
}

func (d *Diverter) open() error {
	if err := d.place(); err != nil {
		return err
	}
	if err := d.load(); err != nil {
		return err
	}
	if err := d.listenRing(); err != nil {
		return err
	}
	var err error
	if d.net, err = openNetwork(d.cfg, d.objs.Saved); err != nil {
		return err
	}
	if err := d.net.set(); err != nil {
		return err
	}
	if err := d.attachAll(); err != nil {
		return err
	}
	d.net.sweepFormer() // now: the programs before these may have been such an agent's, whose connections go on
	return nil
}

func (d *Diverter) listenRing() (err error) {
	if d.ring, err = ringbuf.NewReader(d.objs.Syns); err != nil {
		return fmt.Errorf("read of held SYNs: %w", err)
	}
	return nil
}

// dying is how long another agent's process may still hold what is its own: the kernel kills a worker whose keeper was
// killed a moment later, and whoever started the keeper may have started another one by then.
const dying = 2 * time.Second

// place makes the directory for the pins, and keeps other agents out of it. The lock goes with the process, however it
// ends.
func (d *Diverter) place() error {
	if d.cfg.Pin == "" {
		cookie, err := namespaceCookie()
		if err != nil {
			return err
		}
		at := cmp.Or(d.cfg.BPFFS, bpffs.Default)
		if err := bpffs.Mount(at); err != nil {
			return err
		}
		d.mounted = at
		sweepAbandoned(filepath.Join(at, "boost-*"))
		d.cfg.Pin = filepath.Join(at, fmt.Sprintf("boost-%d", cookie))
	}
	if err := os.MkdirAll(d.cfg.Pin, 0o700); err != nil {
		return fmt.Errorf("%w (is a bpffs mounted there? mount -t bpf bpf DIR)", err)
	}
	f, err := os.Open(d.cfg.Pin)
	if err != nil {
		return err
	}
	for end := time.Now().Add(dying); ; {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil || time.Now().After(end) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("another agent runs in this network namespace: it holds %s: %w", d.cfg.Pin, err)
	}
	d.lock = f
	return nil
}

// namespaceCookie is a number of the network namespace that no other one ever gets: an inode's is given again.
func namespaceCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("number of the network namespace: %w", err)
	}
	return cookie, nil
}

// load loads programs and maps; sessions, and what is to be put back, are those of a killed agent where one left them.
func (d *Diverter) load() error {
	if err := replacing(d.cfg, d.loadOnce); err != nil {
		return err
	}
	return d.objs.Config.Put(uint32(0), divertDivertConfig{Hold: uint64(d.cfg.Hold), Stale: uint64(Stale),
		Mark: d.cfg.Mark, Port: d.cfg.Listener, Abi: abi})
}

// ErrOtherVersion says that connections go on by maps of another version of the program, which this one cannot use.
var ErrOtherVersion = errors.New("the maps there are of another version of this program")

// replacing loads, and where maps are there that another version has made it makes room for its own: the sockets of those ended
// with their process. A process before this one may have left some, though: without their entries what comes for them would
// go on to end hosts that know nothing of them, so they stay as they are.
func replacing(cfg Config, load func() error) error {
	err := load()
	if !errors.Is(err, ebpf.ErrMapIncompatible) {
		return err
	}
	if cfg.Carries > 0 {
		return fmt.Errorf("%w, and connections that are carried go on by them, %d in number (pins in %s): run the version of before until they have ended, and restart the agent then: %w",
			ErrOtherVersion, cfg.Carries, cfg.Pin, err)
	}
	if err := removePins(cfg.Pin); err != nil {
		return err
	}
	return load()
}

func (d *Diverter) loadOnce() error {
	spec, err := loadDivert()
	if err != nil {
		return err
	}
	spec.Maps["holds"].MaxEntries = uint32(d.cfg.Held)
	for _, name := range pinned {
		spec.Maps[name].Pinning = ebpf.PinByName
	}
	return spec.LoadAndAssign(&d.objs, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: d.cfg.Pin}})
}

// pinned are the maps that outlive the agent.
var pinned = []string{"sessions", "saved"}

// Beat says that the agent lives. Without one for Stale SYNs go on, and sessions too, as long as their sockets are there.
func (d *Diverter) Beat() error {
	if err := d.objs.Beat.Put(uint32(0), ktime.Now()); err != nil {
		return fmt.Errorf("say that the agent lives: %w", err)
	}
	return nil
}

// Close takes programs, rules, routes and pins away, and puts sysctls back. Close the agent's connections before: what is
// for them would go on to the end host, which knows nothing of them.
func (d *Diverter) Close() error {
	errs := []error{d.detachAll()}
	if d.net != nil {
		errs = append(errs, d.endWaiting(), d.net.restore())
	}
	if d.ring != nil {
		errs = append(errs, d.ring.Close())
	}
	errs = append(errs, d.objs.Close())
	if d.lock != nil {
		errs = append(errs, os.RemoveAll(d.cfg.Pin), d.lock.Close())
	}
	if d.mounted != "" {
		errs = append(errs, bpffs.Release(d.mounted))
	}
	return errors.Join(errs...)
}

// Leave lets go of everything and leaves it where it is, as the end of a process by a kill does: somebody else goes on with it.
func (d *Diverter) Leave() error {
	var errs []error
	for h, held := range d.hooks {
		errs = append(errs, held.leave())
		delete(d.hooks, h)
	}
	if d.net != nil {
		errs = append(errs, d.net.ns.Close())
	}
	if d.ring != nil {
		errs = append(errs, d.ring.Close())
	}
	errs = append(errs, d.objs.Close())
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// endsOf is the key of a socket between the two.
func endsOf(local, remote netip.AddrPort) divertEnds {
	return divertEnds{Local: local.Addr().As16(), Remote: remote.Addr().As16(), LocalPort: portBytes(local.Port()), RemotePort: portBytes(remote.Port())}
}

func portBytes(p uint16) [2]byte { return [2]byte{byte(p >> 8), byte(p)} }

func (e divertEnds) local() netip.AddrPort { return addrPort(e.Local, e.LocalPort) }

func (e divertEnds) remote() netip.AddrPort { return addrPort(e.Remote, e.RemotePort) }

func addrPort(a [16]byte, p [2]byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a).Unmap(), uint16(p[0])<<8|uint16(p[1]))
}
