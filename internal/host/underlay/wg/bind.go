package wg

import (
	"errors"
	"os"

	"golang.zx2c4.com/wireguard/conn"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// A bind is wireguard-go's own way to send and receive, with its sockets in the daemon's namespace.
type bind struct {
	conn.Bind
	into    *os.File // that namespace
	answers bool     // from the address that it was asked at, as a NAT before the other end wants it
}

func newBind(into *os.File) *bind { return &bind{Bind: conn.NewStdNetBind(), into: into} }

// Open opens the sockets in the daemon's namespace.
func (b *bind) Open(port uint16) (fns []conn.ReceiveFunc, actual uint16, err error) {
	err = b.there(func() (err error) {
		fns, actual, err = b.Bind.Open(port)
		return err
	})
	return fns, actual, err
}

// there opens something in the daemon's namespace.
func (b *bind) there(open func() error) error { return nsenter.Visit(b.into, open) }

// Send sends a batch. A host's packets leave from whatever address its kernel chooses now, since it moves from
// network to network. A batch that the kernel refuses whole, because its packets are larger than what it knows of
// the path, is sent one by one: those are cut in two.
func (b *bind) Send(bufs [][]byte, to conn.Endpoint) error {
	known, ok := to.(*conn.StdNetEndpoint)
	if ok && !b.answers {
		to = &conn.StdNetEndpoint{AddrPort: known.AddrPort}
	}
	err := b.Bind.Send(bufs, to)
	if err == nil {
		return nil
	}
	var errs []error
	for i := range bufs {
		errs = append(errs, b.Bind.Send(bufs[i:i+1], to))
	}
	if err := errors.Join(errs...); err != nil && ok && b.answers {
		return b.Bind.Send(bufs, &conn.StdNetEndpoint{AddrPort: known.AddrPort}) // the address that it was asked at is gone
	}
	return nil
}
