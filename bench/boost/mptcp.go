package boost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/lab/agents"
)

// subflows are those of one connection of Multipath TCP: the first one, and one from each of the client's further addresses,
// all over the one path.
const subflows = 8

// furtherAddresses are those of the client for further subflows.
var furtherAddresses = netip.MustParsePrefix("10.99.0.0/29")

// solMPTCP and mptcpInfo are of linux/mptcp.h.
const (
	solMPTCP  = 284
	mptcpInfo = 1
)

// multipath compares one connection over the agents with one of Multipath TCP of eight subflows, with CUBIC or BBR. Where the
// kernel has none it is left out.
func (b *rig) multipath(ctx context.Context) error {
	if err := b.loss(ctx, lossOfMost); err != nil {
		return err
	}
	if err := b.manyAddresses(ctx); err != nil {
		b.note("there is no MPTCP to compare with: %v", err)
		return ctx.Err()
	}
	ours := b.boosted()
	var peers []*contender
	for _, control := range []string{"cubic", "bbr"} {
		name := fmt.Sprintf("MPTCP with %d subflows of %s", subflows, strings.ToUpper(control))
		peers = append(peers, &contender{name: name, run: func(ctx context.Context) (float64, error) { return b.overMany(ctx, control) }})
	}
	if err := b.turns(ctx, lossOfMost+" loss", append(peers, ours)...); err != nil {
		return err
	}
	for _, p := range peers {
		b.add(judged("boosted, "+lossOfMost+" loss: goodput, of "+p.name+"'s", "ratio", "", rated(p), paired(ours.all, p.all, quotient)))
	}
	return nil
}

// manyAddresses gives the client an address for each further subflow, and has the kernel use it.
func (b *rig) manyAddresses(ctx context.Context) error {
	client := b.lab.Plan().Node("c1").Ports[0]
	at := agents.Address(b.lab, "c1").Addr().String()
	for _, node := range []string{"x", "y", "s1"} {
		if err := b.route(ctx, node, furtherAddresses.String(), at); err != nil {
			return err
		}
	}
	for _, node := range []string{"c1", "s1"} {
		if _, err := b.ip(ctx, node, "mptcp", "limits", "set", "subflow", fmt.Sprint(subflows)); err != nil {
			return err
		}
	}
	if _, err := b.ip(ctx, "c1", "mptcp", "endpoint", "flush"); err != nil {
		return err
	}
	addr := furtherAddresses.Addr()
	for range subflows - 1 {
		addr = addr.Next()
		if _, err := b.ip(ctx, "c1", "address", "replace", addr.String()+"/32", "dev", client.Dev); err != nil {
			return err
		}
		if _, err := b.ip(ctx, "c1", "mptcp", "endpoint", "add", addr.String(), "dev", client.Dev, "subflow"); err != nil {
			return err
		}
	}
	return nil
}

// overMany is one stream of Multipath TCP, in bits a second.
func (b *rig) overMany(ctx context.Context, control string) (rate float64, err error) {
	var l net.Listener
	err = b.lab.In("s1", func() (err error) {
		var lc net.ListenConfig
		lc.SetMultipathTCP(true)
		l, err = lc.Listen(ctx, "tcp", b.server(ownPlain).String())
		return err
	})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	var c net.Conn
	err = b.lab.In("c1", func() (err error) {
		d := net.Dialer{Timeout: reachable, Control: func(_, _ string, raw syscall.RawConn) error {
			var failed error
			err := raw.Control(func(fd uintptr) {
				failed = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, control)
			})
			return errors.Join(err, failed)
		}}
		d.SetMultipathTCP(true)
		c, err = d.DialContext(ctx, "tcp", b.server(ownPlain).String())
		return err
	})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		return 0, err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { c.Close(); s.Close() })
	defer stop()
	var arrived atomic.Int64
	go func() { // ends with c
		for buf := make([]byte, ownBuffer); ; {
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}()
	go func() { // ends with s
		for buf := make([]byte, ownBuffer); ; {
			n, err := s.Read(buf)
			if arrived.Add(int64(n)); err != nil {
				return
			}
		}
	}()
	if err := bench.Pause(ctx, settle); err != nil {
		return 0, err
	}
	if n, err := subflowsOf(c); err != nil || n != subflows {
		return 0, errors.Join(fmt.Errorf("MPTCP has %d subflows, want %d", n, subflows), err)
	}
	before := arrived.Load()
	err = bench.Pause(ctx, b.opt.Each)
	return float64(arrived.Load()-before) * 8 / b.opt.Each.Seconds(), err
}

// subflowsOf is how many subflows a connection has; 0: it is one of plain TCP.
func subflowsOf(c net.Conn) (n int, err error) {
	t := c.(*net.TCPConn)
	if is, err := t.MultipathTCP(); !is || err != nil {
		return 0, err
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0, err
	}
	var info int
	var failed error
	err = raw.Control(func(fd uintptr) { info, failed = unix.GetsockoptInt(int(fd), solMPTCP, mptcpInfo) })
	return 1 + int(byte(info)), errors.Join(err, failed) // struct mptcp_info begins with a byte: subflows besides the first
}
