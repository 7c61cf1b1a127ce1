package ends

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/divert"
)

// wires are raw sockets by which frames leave: one with the mark, by lo, from where the program there takes them back to
// the port where they came; one with that of what is carried, by the ports.
type wires struct {
	marked, plain int
	lo            int
}

func openWires(mark uint32) (*wires, error) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, err
	}
	w := &wires{marked: -1, plain: -1, lo: lo.Index}
	if w.marked, err = raw(); err == nil {
		w.plain, err = raw()
	}
	if err == nil {
		err = unix.SetsockoptInt(w.marked, unix.SOL_SOCKET, unix.SO_MARK, int(mark))
	}
	if err == nil {
		err = unix.SetsockoptInt(w.plain, unix.SOL_SOCKET, unix.SO_MARK, Carried) // refusals are the servers'
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("raw socket for held SYNs: %w", err), w.close())
	}
	return w, nil
}

// raw is a socket that gets nothing: its protocol is none.
func raw() (int, error) { return unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) }

// again sends a held SYN on its way again.
func (w *wires) again(s divert.HeldSYN) error { return send(w.marked, w.lo, s.Frame) }

// out sends a frame out of a port. The program at its egress looks at TCP alone.
func (w *wires) out(port int, frame []byte) error { return send(w.plain, port, frame) }

func send(fd, ifindex int, frame []byte) error {
	// The protocol is as in the frame; the kernel takes it in network order.
	to := &unix.SockaddrLinklayer{Ifindex: ifindex, Halen: 6, Protocol: binary.NativeEndian.Uint16(frame[12:14])}
	copy(to.Addr[:], frame[:6])
	if err := unix.Sendto(fd, frame, 0, to); err != nil {
		return fmt.Errorf("send a frame of %d bytes by interface %d: %w", len(frame), ifindex, err)
	}
	return nil
}

func (w *wires) close() error {
	var errs []error
	for _, fd := range []int{w.marked, w.plain} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}
