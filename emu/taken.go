package emu

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A taken interface is the machine's own, or a macvlan. A packet socket reads all that it receives, also what is for
// others, and writes to it; its offloads are used by way of the same header as a TAP's.
type taken struct {
	file int
	mac  [6]byte
	msg  unix.Msghdr
	iov  unix.Iovec
	note [8]uint64 // what the kernel says beside a frame: when it came
}

func openTaken(e End) (device, error) { return inside(e, openTakenHere) }

func openTakenHere(e End) (device, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	t := &taken{file: fd}
	if err := t.bind(e); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return t, nil
}

// takenBuffer is how much may wait in the socket until the network has time.
const takenBuffer = 32 << 20

func (t *taken) bind(e End) error {
	req, err := unix.NewIfreq(e.Dev)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(t.file, unix.SIOCGIFINDEX, req); err != nil {
		return fmt.Errorf("there is none of that name: %w", err)
	}
	index := int(req.Uint32())
	if t.mac, err = hardwareAddress(t.file, e.Dev); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(t.file, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return fmt.Errorf("offload header: %w", err)
	}
	unix.SetsockoptInt(t.file, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)   //nolint:errcheck // since Linux 4.20
	unix.SetsockoptInt(t.file, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, takenBuffer) //nolint:errcheck // the default will do
	if err := unix.SetsockoptInt(t.file, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1); err != nil {
		return fmt.Errorf("have the arrival of frames noted: %w", err)
	}
	m := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(t.file, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
		return fmt.Errorf("receive what is for others: %w", err)
	}
	if err := unix.Bind(t.file, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func (t *taken) fd() int { return t.file }

func (t *taken) address() [6]byte { return [6]byte{} } // who is beyond is not known before somebody speaks

func (t *taken) close() { unix.Close(t.file) }

func (t *taken) read(b []byte) (int, unix.Errno) {
	t.iov.Base = &b[0]
	t.iov.SetLen(len(b))
	t.msg.Iov, t.msg.Control = &t.iov, (*byte)(unsafe.Pointer(&t.note[0]))
	t.msg.SetIovlen(1)
	t.msg.SetControllen(int(unsafe.Sizeof(t.note)))
	n, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(t.file), uintptr(unsafe.Pointer(&t.msg)), 0)
	return int(n), e
}

// arrived translates: the kernel notes the time of day.
func (t *taken) arrived(now int64) int64 {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&t.note[0]))
	if t.msg.Controllen < unix.SizeofCmsghdr+16 || h.Level != unix.SOL_SOCKET || h.Type != unix.SO_TIMESTAMPNS_NEW {
		return now
	}
	came := time.Unix(int64(t.note[unix.SizeofCmsghdr/8]), int64(t.note[unix.SizeofCmsghdr/8+1]))
	return now - (time.Now().UnixNano() - came.UnixNano())
}

func (t *taken) empty(int64) {}

func (t *taken) sight() error { return nil }

func (t *taken) write(b []byte) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(t.file), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return e
}

func (t *taken) writev(iov *[2]unix.Iovec) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_WRITEV, uintptr(t.file), uintptr(unsafe.Pointer(&iov[0])), 2)
	return e
}
