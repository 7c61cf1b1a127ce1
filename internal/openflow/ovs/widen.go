package ovs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Buffer is how much may wait at a port of a switch in user space: some hundred frames of 64 kB.
const Buffer = 8 << 20

// Widen gives every packet socket of a process, which are the ports of a daemon, a receive buffer of at
// least so many bytes, and returns how many there are and how many it changed. Open vSwitch takes the default of the machine, which
// holds three large frames, has no option for it, and does not count what is lost there: probes and answers
// in the shade of one fast stream. The sockets are reached through pidfd_getfd (Linux 5.6).
func Widen(pid, bytes int) (ports, changed int, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(process)
	all, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		return 0, 0, err
	}
	for _, e := range all {
		number, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fd, err := unix.PidfdGetfd(process, number, 0)
		if errors.Is(err, unix.EBADF) {
			continue // closed meanwhile
		}
		if err != nil {
			return ports, changed, fmt.Errorf("process %d: look at its socket %d: %w", pid, number, err)
		}
		port, did, err := widen(fd, bytes)
		unix.Close(fd)
		if err != nil {
			return ports, changed, fmt.Errorf("process %d: buffer of socket %d: %w", pid, number, err)
		}
		if port {
			ports++
		}
		if did {
			changed++
		}
	}
	return ports, changed, nil
}

// widen reports whether the file is a packet socket of a device, and whether it had less.
func widen(fd, bytes int) (port, did bool, err error) {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_PACKET {
		return false, false, nil //nolint:nilerr // no socket
	}
	name, err := unix.Getsockname(fd)
	if at, ok := name.(*unix.SockaddrLinklayer); err != nil || !ok || at.Ifindex == 0 {
		return false, false, err // only to send
	}
	has, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF) // the kernel tells twice what was asked for
	if err != nil || has >= 2*bytes {
		return true, false, err
	}
	return true, true, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes)
}
