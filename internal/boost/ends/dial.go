package ends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// Why there is no connection to a server.
var (
	ErrRefused = errors.New("refused")     // the server, or a router on the way, says no
	ErrSilent  = errors.New("no answer")   // nobody says anything
	ErrInUse   = errors.New("in use here") // a socket here has the client's address and port already
)

// refusals are what the kernel makes of an RST, and of ICMP errors that say that there is no way or no right.
var refusals = []error{unix.ECONNREFUSED, unix.ECONNRESET, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EACCES, unix.ENOPROTOOPT, unix.EPROTO}

// Dial connects to the server from the client's address and port, and returns what the server says of itself in its
// SYN-ACK. The error is ErrRefused, ErrSilent when ctx ends or the kernel gives up, ErrInUse, or says what is wrong here.
func (e *Ends) Dial(ctx context.Context, client, server netip.AddrPort) (*net.TCPConn, frame.Options, error) {
	return e.dial(ctx, client, server, transparent)
}

func (e *Ends) dial(ctx context.Context, client, server netip.AddrPort, control func(string, string, syscall.RawConn) error) (*net.TCPConn, frame.Options, error) {
	if err := e.kernel.Begin(client, server); err != nil {
		return nil, frame.Options{}, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(client), Control: control, KeepAliveConfig: alive}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, familyOf(server.Addr()), server.String())
	if err != nil {
		return nil, frame.Options{}, errors.Join(fmt.Errorf("%w: %w", reasonOf(err), err), e.kernel.End(client, server))
	}
	_, peer := e.kernel.Said(client, server)
	return c.(*net.TCPConn), peer, nil
}

var errHere = errors.New("not possible here")

func reasonOf(err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	var n net.Error
	switch {
	case slices.ContainsFunc(refusals, is):
		return ErrRefused
	case is(unix.EADDRINUSE), is(unix.EADDRNOTAVAIL):
		return ErrInUse
	case is(unix.ETIMEDOUT), is(context.DeadlineExceeded), is(context.Canceled), errors.As(err, &n) && n.Timeout():
		return ErrSilent
	}
	return errHere
}
