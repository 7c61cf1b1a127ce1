package kick

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// A Kicker looks at the TCP connections of one network namespace and kicks them. It may be used from
// several goroutines.
type Kicker struct {
	one     sync.Mutex // of a look at one socket
	mu      sync.Mutex // of a pass over all, which is long, and of records
	netns   *os.File
	objects dumpObjects
	iter    *link.Iter // nil where the kernel has none
	lost    error
	raw     int          // raw socket towards local sockets
	records []dumpRecord // of a pass: what was read last
}

// Open makes a Kicker for the calling thread's network namespace. It needs root. Where the kernel cannot
// run iter/tcp programs (before 5.9) it still opens: see Lost.
func Open() (*Kicker, error) {
	netns, err := nsenter.Here()
	if err != nil {
		return nil, fmt.Errorf("kick: open the network namespace: %w", err)
	}
	k := &Kicker{netns: netns, raw: -1}
	if k.raw, err = rawSocket(); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	k.lost = k.load()
	return k, nil
}

// rawSocket is one for whole IPv6 packets, which the mark leads to local sockets even where their address
// is nobody's.
func rawSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return -1, fmt.Errorf("kick: raw socket: %w (needs root)", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, host.Mark); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("kick: mark the raw socket: %w (needs root)", err)
	}
	return fd, nil
}

// BindTo has the packets for local sockets come by a device, that of a VRF whose sockets they are.
func (k *Kicker) BindTo(device string) error {
	if err := unix.BindToDevice(k.raw, device); err != nil {
		return fmt.Errorf("kick: bind the raw socket to %s: %w", device, err)
	}
	return nil
}

// load readies the iterator.
func (k *Kicker) load() error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("kick: lift the locked-memory limit: %w (needs root)", err)
	}
	if err := loadDumpObjects(&k.objects, nil); err != nil {
		return fmt.Errorf("kick: load the program that reads TCP sockets (kernel 5.9 or later): %w", err)
	}
	it, err := link.AttachIter(link.IterOptions{Program: k.objects.TcpSockets})
	if err != nil {
		return fmt.Errorf("kick: attach the program that reads TCP sockets (kernel 5.9 or later): %w", err)
	}
	k.iter = it
	return nil
}

// Lost says why sequence numbers cannot be read, nil where they can. Without them Snapshot and State come
// from sock_diag: states, timers, backoff and round trips are there, but no sequence numbers, windows,
// timestamps or Gaps (Socket.Sequenced is false), and Kick and Reset return ErrBlind: connections then
// wait for their timers.
func (k *Kicker) Lost() error { return k.lost }

// ErrBlind is in the error of Kick and Reset where sequence numbers cannot be read.
var ErrBlind = errors.New("this kernel does not tell TCP sequence numbers")

// Close ends the Kicker; connections are not touched.
func (k *Kicker) Close() error {
	k.one.Lock()
	defer k.one.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	if k.iter != nil {
		err = k.iter.Close()
		k.iter = nil
	}
	if k.raw >= 0 {
		unix.Close(k.raw)
		k.raw = -1
	}
	err = errors.Join(err, k.objects.Close(), k.netns.Close())
	k.objects = dumpObjects{}
	return err
}

// inside runs f in the Kicker's namespace: an iterator shows that of the thread which opens it.
func (k *Kicker) inside(f func() error) error { return nsenter.Visit(k.netns, f) }
