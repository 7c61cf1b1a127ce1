package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// joiner is the host that leaves and comes again.
const joiner = "s3"

// switchJoins ends and starts a host's daemon while another host sends to its address all the time. The clock starts
// with the SOLICIT by which the host asks for a router, which the switch punts, and stops with the first packet that
// the switch carries to the address again.
func switchJoins(ctx context.Context, r *Rig, _ string, size SwitchSize, rep *Report) error {
	stop, err := r.knock(ctx, "c1", joiner)
	if err != nil {
		return err
	}
	defer stop()
	var took []float64
	for range size.Joins {
		if err := r.Act(ctx, "kill %s/hostd SIGTERM", joiner); err != nil {
			return err
		}
		if err := r.left(ctx, joiner); err != nil {
			return err
		}
		w, err := r.tap(joiner)
		if err != nil {
			return err
		}
		err = r.again(ctx, "start "+joiner+"/hostd")
		var asked, reached time.Time
		if err == nil {
			asked, err = w.await("SOLICIT", func(udp []byte) bool { return messageType(udp) == wire.TypeSolicit })
		}
		if err == nil {
			reached, err = w.await("packet from c1", func(udp []byte) bool { return binary.BigEndian.Uint16(udp[2:]) == knockPort })
		}
		w.close()
		if err != nil {
			return fmt.Errorf("%s joins: %w", joiner, err)
		}
		took = append(took, float64(reached.Sub(asked).Microseconds())/1e3)
		if err := r.back(ctx, joiner); err != nil {
			return err
		}
	}
	rep.Rows = append(rep.Rows, NewRow("host joins: its first packet punted until a packet to it passes, p50", "ms", "<= 2", "", took))
	return nil
}

// knockPort is where nobody listens; the packets that go there are looked at on the way.
const knockPort = 9

// knock sends to a host's address five thousand times a second until stop is called.
func (r *Rig) knock(ctx context.Context, from, host string) (stop func(), err error) {
	h, err := r.Host(ctx, host)
	if err != nil {
		return nil, err
	}
	prefix, err := netip.ParsePrefix(h.Locator)
	if err != nil {
		return nil, fmt.Errorf("locator of %s: %w", host, err)
	}
	to := netip.AddrPortFrom(sid.LocatorOf(prefix.Addr()).Host(), knockPort)
	var c *net.UDPConn
	if err := r.In(from, func() (err error) { c, err = net.ListenUDP("udp6", nil); return err }); err != nil {
		return nil, err
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.WriteToUDPAddrPort([]byte("knock"), to) //nolint:errcheck // nobody is there at times
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done; c.Close() }, nil
}

// back waits until the host has joined and answers.
func (r *Rig) back(ctx context.Context, host string) error {
	return patiently(ctx, func() error {
		h, err := r.Host(ctx, host)
		if err == nil && h.State != "up" {
			err = fmt.Errorf("%s is not back: its state is %q", host, h.State)
		}
		return err
	})
}

// left waits until the network does not know the host any more.
func (r *Rig) left(ctx context.Context, host string) error {
	return patiently(ctx, func() error {
		if h, err := r.Host(ctx, host); err == nil && h.State != "left" && h.Locator != "" {
			return fmt.Errorf("%s has not left: its state is %q", host, h.State)
		}
		return nil
	})
}

// again does what fails while a process of before is still ending.
func (r *Rig) again(ctx context.Context, action string) error {
	return patiently(ctx, func() error { return r.Act(ctx, "%s", action) })
}

// patience bounds how long patiently tries.
const patience = 20 * time.Second

// patiently tries until try succeeds; after a while, or when ctx ends, with the last error.
func patiently(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A tap sees the frames at the switch's end of a host's link.
type tap struct{ fd int }

// tapTime bounds the wait for a frame.
const tapTime = 20 * time.Second

func (r *Rig) tap(host string) (w *tap, err error) {
	port := r.Plan().Node(host).Ports[0]
	err = r.In(port.Far.Name, func() error {
		iface, err := net.InterfaceByName(port.Peer.Dev)
		if err != nil {
			return err
		}
		proto := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL)) // of one protocol the kernel shows what comes in alone
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(proto))
		if err != nil {
			return err
		}
		w = &tap{fd}
		tv := unix.NsecToTimeval(tapTime.Nanoseconds())
		err = errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: iface.Index}))
		if err != nil {
			w.close()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look at the link of %s: %w", host, err)
	}
	return w, nil
}

func (w *tap) close() { unix.Close(w.fd) }

// await is when the next datagram passed that is the one.
func (w *tap) await(what string, is func(udp []byte) bool) (time.Time, error) {
	const ip, header, proto = 40, 8, 17
	b := make([]byte, 2048)
	for limit := time.Now().Add(tapTime); time.Now().Before(limit); {
		n, _, err := unix.Recvfrom(w.fd, b, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("no %s passed: %w", what, err)
		}
		if n >= ip+header && b[0]>>4 == 6 && b[6] == proto && is(b[ip:n]) {
			return time.Now(), nil
		}
	}
	return time.Time{}, fmt.Errorf("no %s passed within %v", what, tapTime)
}

// messageType is that of a message of the protocol, 0 of anything else.
func messageType(udp []byte) wire.Type {
	if binary.BigEndian.Uint16(udp[2:]) != sid.Port {
		return 0
	}
	t, _, err := wire.ParseHeader(udp[8:])
	if err != nil {
		return 0
	}
	return t
}
