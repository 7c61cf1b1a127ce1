package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// receiveBuffer is what the kernel keeps while the reader is busy.
const receiveBuffer = 16 << 20

// A Tap sees the network's packets at one interface, as they are on the wire. While the interface is down there are
// none. One goroutine reads it.
type Tap struct {
	file   *os.File
	conn   rawConn
	buffer []byte
	oob    []byte
}

type rawConn interface {
	Read(func(fd uintptr) bool) error
	Control(func(fd uintptr)) error
}

// Open begins to watch an interface of the network namespace that the calling thread is in. Of each packet up to snap
// bytes are kept.
func Open(device string, space sid.Space, snap int) (*Tap, error) {
	ifi, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", device, err)
	}
	program, err := filter(space)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", device, err)
	}
	all := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL))
	err = errors.Join(
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index})) // from here on it receives, by the filter
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("watch %s: %w", device, err)
	}
	t := &Tap{file: os.NewFile(uintptr(fd), device), buffer: make([]byte, snap), oob: make([]byte, 128)}
	if t.conn, err = t.file.SyscallConn(); err != nil {
		t.file.Close()
		return nil, err
	}
	return t, nil
}

// Next waits for a packet. What it returns is good until the next call.
func (t *Tap) Next(ctx context.Context) (p Packet, err error) {
	stop := context.AfterFunc(ctx, func() { t.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var fault error
	err = t.conn.Read(func(fd uintptr) bool {
		p, fault = t.receive(int(fd))
		return !errors.Is(fault, unix.EAGAIN)
	})
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	return p, errors.Join(err, fault)
}

func (t *Tap) receive(fd int) (Packet, error) {
	n, oobn, _, from, err := unix.Recvmsg(fd, t.buffer, t.oob, unix.MSG_TRUNC)
	for err == unix.ENETDOWN { // said once each time that the interface goes down; the socket stays bound until it is up again
		n, oobn, _, from, err = unix.Recvmsg(fd, t.buffer, t.oob, unix.MSG_TRUNC)
	}
	if err != nil {
		return Packet{}, err
	}
	p := Packet{At: stamp(t.oob[:oobn]), Data: t.buffer[:min(n, len(t.buffer))], Length: n}
	if at, ok := from.(*unix.SockaddrLinklayer); ok {
		p.Out = at.Pkttype == unix.PACKET_OUTGOING
	}
	return p, nil
}

// stamp is when the kernel saw the packet.
func stamp(oob []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(oob)
	for _, m := range messages {
		if err == nil && m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			ts := (*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			return time.Unix(ts.Unix())
		}
	}
	return time.Now()
}

// Lost is how many packets the kernel dropped since it was asked last, because they were not read in time.
func (t *Tap) Lost() (lost uint32) {
	t.conn.Control(func(fd uintptr) { //nolint:errcheck // closed: it lost none since
		if s, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			lost = s.Drops
		}
	})
	return lost
}

// Close ends the watching.
func (t *Tap) Close() error { return t.file.Close() }
