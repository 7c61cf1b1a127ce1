package greeting

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/backoff"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// How often a host without a router asks for one: quickly at first, then once a second.
const (
	solicitFirst = 20 * time.Millisecond
	solicitLast  = time.Second
)

var allNodes = netip.MustParseAddr("ff02::1")

// A Link is one that a host is on.
type Link struct {
	Log   *slog.Logger
	Host  string // its name
	Name  string // of the interface
	Index int
	Post  func(func())                             // hands work to the loop
	Call  func(ctx context.Context, f func()) bool // likewise, and waits for it
	Hear  Listener
}

// A Listener hears what is on the link, in the loop.
type Listener interface {
	Heard(from netip.Addr, h wire.Hello, ask func()) // ask asks the link once more
	Unheard(tries int) (known bool)                  // known: a router was heard meanwhile, and nothing is asked any more
	Trouble(what string)
}

// Listen asks for a router and hears HELLOs until ctx ends.
func Listen(ctx context.Context, l Link) {
	for ctx.Err() == nil {
		err := l.converse(ctx)
		if ctx.Err() != nil {
			return
		}
		l.Post(func() { l.Hear.Trouble(fmt.Sprintf("cannot ask for a router: %v", err)) })
		select {
		case <-ctx.Done():
		case <-time.After(solicitLast):
		}
	}
}

func (l *Link) converse(ctx context.Context) error {
	conn, err := openLink(ctx, l.Name)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() {
		if err := meet(ctx, l.Index); err != nil && ctx.Err() == nil {
			l.Log.Debug("the router is asked for its address", "uplink", l.Name, "error", err)
		}
	}()
	go l.solicit(ctx, conn)
	buf := make([]byte, wire.MaxLen+1)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		m, err := wire.Parse(buf[:n])
		if errors.Is(err, wire.ErrVersion) && from.Addr().IsLinkLocalUnicast() {
			l.Post(func() { l.Hear.Trouble(otherVersion(from.Addr(), err)) })
			continue
		}
		if h, ok := m.(wire.Hello); ok && err == nil && from.Addr().IsLinkLocalUnicast() {
			l.Post(func() {
				if ctx.Err() == nil {
					l.Hear.Heard(from.Addr().WithZone(""), h, func() { l.ask(conn) })
				}
			})
		}
	}
}

// otherVersion is what is said of messages that only another version understands; they are ignored.
func otherVersion(from netip.Addr, err error) string {
	return fmt.Sprintf("%v is not understood (%v): upgrade the older of the two", from, err)
}

// openLink opens the protocol's port on one interface.
func openLink(ctx context.Context, dev string) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if fail := c.Control(func(fd uintptr) {
			err = errors.Join(unix.BindToDevice(int(fd), dev),
				// Beside a router the port is its as well; programs of other users never share it so.
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 1))
		}); fail != nil {
			return fail
		}
		return err
	}}
	conn, err := lc.ListenPacket(ctx, "udp6", fmt.Sprintf("[::]:%d", sid.Port))
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// solicit asks until a router was heard, then waits for the periodic HELLOs.
func (l *Link) solicit(ctx context.Context, conn *net.UDPConn) {
	again := backoff.Backoff{First: solicitFirst, Last: solicitLast}
	for tries := 1; ctx.Err() == nil; tries++ {
		l.ask(conn)
		select {
		case <-ctx.Done():
		case <-time.After(again.Next()):
		}
		var known bool
		if !l.Call(ctx, func() { known = l.Hear.Unheard(tries) }) || known {
			return
		}
	}
}

// ask sends SOLICIT to the link.
func (l *Link) ask(conn *net.UDPConn) {
	m := wire.Solicit{Header: wire.Header{Nonce: nonce()}, Name: l.Host}
	to := netip.AddrPortFrom(allNodes.WithZone(strconv.Itoa(l.Index)), sid.Port)
	conn.WriteToUDPAddrPort(m.Append(nil), to) //nolint:errcheck // it is asked again
}

func nonce() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}
