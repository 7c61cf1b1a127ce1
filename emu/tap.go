package emu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
	"scaffold.dev/scaffold/internal/linux/tuntap"
)

// txQueue is how many frames may wait in a TAP until the engine has time; what comes when it is full
// is lost without the link's doing, so it is long.
const txQueue = 8192

// USO (linux/if_tun.h).
const (
	offloadUSO4 = 0x20
	offloadUSO6 = 0x40
)

// A tap is one end of a link.
type tap struct {
	file     int
	mac      [6]byte          // of the interface that the kernel has
	arrivals *tuntap.Arrivals // nil where the kernel does not let us know
	blind    error            // and why
}

// openTap makes the interface of an end, down.
func openTap(e End) (device, error) { return inside(e, openTapHere) }

// inside opens a device on a thread that is in its namespace.
func inside(e End, open func(End) (device, error)) (d device, err error) {
	err = nsenter.DoAt(e.Netns, func() error {
		d, err = open(e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("interface %s in %s: %w", e.Dev, e.Netns, err)
	}
	return d, nil
}

// offloads are what the kernel may leave to the network. USO is there since Linux 6.2.
const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN

func openTapHere(e End) (device, error) {
	fd, err := tuntap.Open(e.Dev, tuntap.TAP|tuntap.Header, offloads|offloadUSO4|offloadUSO6, offloads)
	if err != nil {
		return nil, err
	}
	t := &tap{file: fd}
	if err := t.setUp(e); err != nil {
		unix.Close(fd)
		return nil, err
	}
	t.arrivals, t.blind = tuntap.NewArrivals(fd)
	return t, nil
}

func (t *tap) setUp(e End) error {
	req, err := unix.NewIfreq(e.Dev)
	if err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	if e.MTU > 0 {
		req.SetUint32(uint32(e.MTU))
		if err := unix.IoctlIfreq(s, unix.SIOCSIFMTU, req); err != nil {
			return fmt.Errorf("MTU %d: %w", e.MTU, err)
		}
	}
	req.SetUint32(txQueue)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFTXQLEN, req); err != nil {
		return fmt.Errorf("queue of %d frames: %w", txQueue, err)
	}
	t.mac, err = hardwareAddress(s, e.Dev)
	return err
}

// hardwareAddress asks for the Ethernet address of an interface.
func hardwareAddress(s int, dev string) (mac [6]byte, err error) {
	var req struct {
		name   [unix.IFNAMSIZ]byte
		family uint16
		mac    [6]byte
		_      [16]byte
	}
	copy(req.name[:unix.IFNAMSIZ-1], dev)
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCGIFHWADDR, uintptr(unsafe.Pointer(&req)))
	if e != 0 {
		return mac, fmt.Errorf("its Ethernet address: %w", e)
	}
	return req.mac, nil
}

func (t *tap) setCarrier(on bool) error {
	value := 0
	if on {
		value = 1
	}
	return unix.IoctlSetPointerInt(t.file, unix.TUNSETCARRIER, value)
}

func (t *tap) fd() int { return t.file }

func (t *tap) address() [6]byte { return t.mac }

func (t *tap) close() {
	unix.Close(t.file)
	if t.arrivals != nil {
		t.arrivals.Close()
	}
}

func (t *tap) arrived(now int64) int64 {
	if t.arrivals == nil {
		return now
	}
	return t.arrivals.Next()
}

func (t *tap) empty(now int64) {
	if t.arrivals != nil {
		t.arrivals.Empty(now)
	}
}

func (t *tap) sight() error { return t.blind }

// read and write bypass the Go scheduler: they do not block, and one that gives its processor away
// may wait long to get it back.
func (t *tap) read(b []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(t.file), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), e
}

func (t *tap) write(b []byte) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(t.file), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return e
}

// writev writes one frame of two pieces.
func (t *tap) writev(iov *[2]unix.Iovec) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_WRITEV, uintptr(t.file), uintptr(unsafe.Pointer(&iov[0])), 2)
	return e
}
