package sockets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// A Host is one network namespace that takes part. One goroutine reads it and dumps; Close may come
// from another.
type Host struct {
	hooks  *Hooks
	netns  uint64 // cookie
	prefix netip.Prefix
	wild   bool // wildcard listeners serve, too
	reader *ringbuf.Reader
	open   sync.Mutex // held to look into the ring, which must not be unmapped meanwhile
	ended  bool
	record ringbuf.Record
	lost   uint64 // seen so far
	diag   *Diag
}

// Join makes the calling thread's network namespace take part: sockets on the addresses of services,
// a /32, are reported from now on; Dump tells the ones from before. A row that a killed daemon left is
// taken over.
func (h *Hooks) Join(services netip.Prefix) (*Host, error) { return h.join(services, false) }

// JoinWild is Join for a namespace whose wildcard listeners, of TCP, serve too: their events have the address ::.
func (h *Hooks) JoinWild(services netip.Prefix) (*Host, error) { return h.join(services, true) }

func (h *Hooks) join(services netip.Prefix, wild bool) (*Host, error) {
	if services.Bits() != sid.ServicePrefixBits || !services.Addr().Is6() {
		return nil, fmt.Errorf("service prefix %v: want an IPv6 /%d", services, sid.ServicePrefixBits)
	}
	host := &Host{hooks: h, prefix: services, wild: wild}
	inode, ok := inodeOf("/proc/thread-self/ns/net")
	if !ok {
		return nil, errors.New("this thread's network namespace cannot be read in /proc")
	}
	var err error
	if host.netns, err = netnsCookie(); err != nil {
		return nil, err
	}
	if host.diag, err = OpenDiag(); err != nil {
		return nil, err
	}
	if err := host.openRing(); err != nil {
		host.diag.Close()
		return nil, err
	}
	if wild {
		err = h.maps.Wildcards.Put(host.netns, uint32(1))
	} else {
		err = ignoreMissing(h.maps.Wildcards.Delete(host.netns))
	}
	if err != nil {
		host.reader.Close()
		host.diag.Close()
		return nil, fmt.Errorf("say whether wildcard listeners serve: %w", err)
	}
	top := services.Addr().As16()
	row := hooksHostRow{Inode: inode, Services: [4]byte(top[:4])}
	if err := h.maps.Hosts.Put(host.netns, &row); err != nil {
		host.reader.Close()
		host.diag.Close()
		return nil, fmt.Errorf("enter this host among the machine's %d: %w", h.maps.Hosts.MaxEntries(), err)
	}
	return host, nil
}

// openRing makes the host's ring buffer and puts it where the hooks find it.
func (host *Host) openRing() error {
	spec, err := loadHooks()
	if err != nil {
		return fmt.Errorf("parse the socket hooks: %w", err)
	}
	ring, err := ebpf.NewMap(spec.Maps["rings"].InnerMap)
	if err != nil {
		return fmt.Errorf("make the ring buffer of socket events: %w", err)
	}
	defer ring.Close()
	if err := host.hooks.maps.Rings.Put(host.netns, ring); err != nil {
		return fmt.Errorf("enter the ring buffer of socket events: %w", err)
	}
	host.reader, err = ringbuf.NewReader(ring)
	return err
}

// netnsCookie names the thread's network namespace as the hooks see it.
func netnsCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("ask for the network namespace's cookie: %w (Linux 5.14 or later is needed)", err)
	}
	return cookie, nil
}

// Read blocks for the next event; after Close it returns os.ErrClosed. A Lost event tells that others
// found no room and that Dump must be asked.
func (host *Host) Read() (Event, error) {
	// Events are dropped only while the ring is full, so a loss shows up at the latest when it was
	// drained; looking then and only then misses none.
	if host.drained() {
		if lost := host.lostNow(); lost != host.lost {
			host.lost = lost
			return Event{Kind: Lost, ExitCode: -1}, nil
		}
	}
	if err := host.reader.ReadInto(&host.record); errors.Is(err, ringbuf.ErrFlushed) {
		return Event{Kind: CaughtUp, ExitCode: -1}, nil
	} else if err != nil {
		return Event{}, err
	}
	return parseEvent(host.record.RawSample)
}

// drained tells that nothing is left to read; a ring that was closed meanwhile is left to ReadInto.
func (host *Host) drained() bool {
	host.open.Lock()
	defer host.open.Unlock()
	return !host.ended && host.reader.AvailableBytes() == 0
}

// Flush makes Read return what has happened by now and then CaughtUp: the kernel wakes a reader up to a tick of its
// clock after an event.
func (host *Host) Flush() error {
	host.open.Lock()
	defer host.open.Unlock()
	if host.ended {
		return os.ErrClosed
	}
	return host.reader.Flush()
}

// Interrupt makes a blocked Read return os.ErrClosed; Close must still follow.
func (host *Host) Interrupt() error {
	host.open.Lock()
	host.ended = true
	host.open.Unlock()
	return host.reader.Close()
}

func (host *Host) lostNow() uint64 {
	var row hooksHostRow
	if err := host.hooks.maps.Hosts.Lookup(host.netns, &row); err != nil {
		return host.lost
	}
	return row.Lost
}

func parseEvent(raw []byte) (Event, error) {
	var e hooksSockEvent
	if len(raw) != int(unsafe.Sizeof(e)) {
		return Event{}, fmt.Errorf("socket event of %d bytes, want %d: hooks of another version", len(raw), unsafe.Sizeof(e))
	}
	if _, err := binary.Decode(raw, binary.NativeEndian, &e); err != nil {
		return Event{}, err
	}
	return Event{
		Kind: Kind(e.Kind), Why: Why(e.Why), Cookie: e.Cookie, Proto: sid.Proto(e.Proto),
		Addr: netip.AddrFrom16(e.Addr), Port: e.Port, PID: e.Pid, Comm: unix.ByteSliceToString(e.Comm[:]), ExitCode: e.ExitCode,
	}, nil
}

// Close leaves. With keep the row stays, for a daemon that comes right back: it dumps what it missed.
func (host *Host) Close(keep bool) error {
	err := host.Interrupt()
	host.diag.Close()
	if keep {
		return err
	}
	return errors.Join(err, host.hooks.forget(host.netns))
}
