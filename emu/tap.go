package emu

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// txQueue is how many frames may wait in a TAP until the engine has time; what comes when it is full
// is lost without the link's doing, so it is long.
const txQueue = 8192

// USO, since Linux 6.2 (linux/if_tun.h).
const (
	offloadUSO4 = 0x20
	offloadUSO6 = 0x40
)

// A tap is one end of a link.
type tap struct {
	file int
	mac  [6]byte // of the interface that the kernel has
}

// openTap makes the interface of an end, down.
func openTap(e End) (device, error) { return inside(e, openTapHere) }

// inside opens a device on a thread that is in its namespace.
func inside(e End, open func(End) (device, error)) (d device, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		if err = enter(e.Netns); err == nil {
			d, err = open(e)
		}
		if err != nil {
			err = fmt.Errorf("interface %s in %s: %w", e.Dev, e.Netns, err)
		}
	}()
	<-done
	return d, err
}

func enter(netns string) error {
	if netns == "" {
		return nil
	}
	ns, err := os.Open(netns)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the namespace: %w", err)
	}
	return nil
}

func openTapHere(e End) (device, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w (is the module tun loaded?)", err)
	}
	t := &tap{file: fd}
	if err := t.setUp(e); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return t, nil
}

func (t *tap) setUp(e End) error {
	fd := t.file
	req, err := unix.NewIfreq(e.Dev)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return fmt.Errorf("make it: %w", err)
	}
	offload := unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
	if unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload|offloadUSO4|offloadUSO6) != nil {
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload); err != nil {
			return fmt.Errorf("segmentation offload: %w", err)
		}
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

func (t *tap) close() { unix.Close(t.file) }

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
