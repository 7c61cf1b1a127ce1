package agent

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// atRate calls send, which gives hand packets to the device at once, so often that rate of them go out in a second, and
// says after d how many did.
func atRate(ctx context.Context, device string, d time.Duration, rate, hand int, send func() (int, unix.Errno)) (r Result, err error) {
	for start := Now(); ; {
		r.Nanos = Now() - start
		if r.Nanos >= int64(d) || ctx.Err() != nil {
			return r, nil
		}
		if due := r.Nanos * int64(rate) / 1e9; r.Ops+int64(hand) > due {
			time.Sleep(time.Duration((r.Ops + int64(hand) - due) * 1e9 / int64(rate)))
			continue
		}
		n, e := send()
		switch e {
		case 0:
			r.Ops += int64(n)
		case unix.EAGAIN, unix.EINTR, unix.ENOBUFS: // a queue is full
			r.Lost++
		default:
			return r, fmt.Errorf("send on %s: %w", device, e)
		}
	}
}

// openDevice opens what sends frames on a device, below all that the host would say to them.
func openDevice(device string) (int, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open a packet socket: %w", err)
	}
	err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1) // and the edge, which would drop them
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: dev.Index})
	}
	if err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("send on %s: %w", device, err)
	}
	return fd, nil
}
