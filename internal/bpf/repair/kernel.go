package repair

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of linux/tcp.h and of the kernel's TCP that have no name in x/sys.
const (
	recvQueue       = 1
	sendQueue       = 2
	repairOffSilent = -1 // TCP_REPAIR_OFF_NO_WP: off, and no window probe
	established     = 1

	optTimestamps  = 1 // in tcp_info
	optSACK        = 2
	optWindowScale = 4

	codeMSS         = 2 // TCPOPT_*, RFC 9293 §3.2
	codeWindowScale = 3
	codeSACK        = 4
	codeTimestamps  = 8
)

// info is the beginning of struct tcp_info.
type info struct {
	state, options     uint8
	sndShift, rcvShift uint8
}

func infoOf(fd int) (info, error) {
	var b [8]byte
	if err := get(fd, unix.TCP_INFO, unsafe.Pointer(&b), unsafe.Sizeof(b)); err != nil {
		return info{}, err
	}
	i := info{state: b[0], options: b[5], sndShift: b[6] & 0xf, rcvShift: b[6] >> 4}
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // bit fields begin at the other end
		i.sndShift, i.rcvShift = i.rcvShift, i.sndShift
	}
	return i, nil
}

func set(fd, option, value int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, value)
}

func getWindow(fd int, w *Window) error {
	return get(fd, unix.TCP_REPAIR_WINDOW, unsafe.Pointer(w), unsafe.Sizeof(*w))
}

func get(fd, option int, to unsafe.Pointer, size uintptr) error {
	n := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, uintptr(option), uintptr(to), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func setWindow(fd int, w *Window) error {
	return put(fd, unix.TCP_REPAIR_WINDOW, unsafe.Pointer(w), unsafe.Sizeof(*w))
}

func setOptions(fd int, list []unix.TCPRepairOpt) error {
	return put(fd, unix.TCP_REPAIR_OPTIONS, unsafe.Pointer(unsafe.SliceData(list)), unsafe.Sizeof(list[0])*uintptr(len(list)))
}

func put(fd, option int, from unsafe.Pointer, size uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, uintptr(option), uintptr(from), size, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// writeAll writes in pieces that the kernel can find room for in one go.
func writeAll(fd int, b []byte) error {
	const piece = 1 << 15
	for len(b) > 0 {
		n, err := unix.Write(fd, b[:min(piece, len(b))])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		default:
			b = b[n:]
		}
	}
	return nil
}

func addrPort(sa unix.Sockaddr) (netip.AddrPort, bool) {
	a, ok := sa.(*unix.SockaddrInet6)
	if !ok {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)), true
}

// family is that of a socket for an address. One that Take has read is IPv6 always, for IPv4-mapped addresses as well.
func family(a netip.AddrPort) int {
	if a.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("repair: %s: %w", what, err)
}
