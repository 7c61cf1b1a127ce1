package door

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
)

// meet finds out who the other end is. It returns what takes the connection then, or why nobody does.
func (d *door) meet(ctx context.Context, c net.Conn) (accepted func(), why Reason) {
	if err := c.SetDeadline(time.Now().Add(Wait)); err != nil {
		return nil, Silent
	}
	var b [frame.HelloLen]byte
	if _, err := io.ReadFull(c, b[:1]); err != nil {
		return nil, reasonOf(err)
	}
	if b[0] == tlsRecord {
		return d.control(ctx, &begun{Conn: c, first: b[:1]})
	}
	if frame.Type(b[0]) != frame.TypeHello {
		return nil, Garbled
	}
	if _, err := io.ReadFull(c, b[1:]); err != nil {
		return nil, reasonOf(err)
	}
	return d.data(c, b[:])
}

// control makes the TLS handshake of a control connection.
func (d *door) control(ctx context.Context, c net.Conn) (func(), Reason) {
	t := tls.Server(c, d.TLS)
	if err := t.HandshakeContext(ctx); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, Silent
		}
		return nil, Unproven
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, Silent
	}
	return func() { d.Control(t) }, ""
}

// data looks whether a HELLO is of the trunk that it names.
func (d *door) data(c net.Conn, b []byte) (func(), Reason) {
	h, err := frame.ParseHeader(b)
	if err != nil || h.Type != frame.TypeHello {
		return nil, Garbled
	}
	hello, err := frame.ParseHello(h, b[frame.HeaderLen:])
	if err != nil || hello.Use != frame.Data {
		return nil, Garbled
	}
	secret, there := d.Secret(hello.Trunk, c)
	if !there {
		return nil, NoTrunk
	}
	if claim := b[:frame.HelloLen-frame.MACLen]; !secret.Verify(hello.Connection, seal.FromDialer, claim, hello.MAC[:]) {
		return nil, Forged
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, Silent
	}
	return func() { d.Data(c, hello) }, ""
}

// reasonOf is why a connection ended before it had said who it is: by the deadline, or by its other end.
func reasonOf(err error) Reason {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Garbled
	}
	return Silent
}

// A begun connection gives again what was read of it.
type begun struct {
	net.Conn
	first []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}
