package peering

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// A Config is what both agents of a trunk need to know of one of its paths.
type Config struct {
	Path        *trunk.Path
	Number      uint64 // of the trunk
	Incarnation uint64 // of this worker
	Protection  frame.Protection
	// Silence is how long the other agent may say nothing on the control connection until it is taken for gone.
	Silence time.Duration
}

// handshake is how long the other agent may take for its HELLO: it is known by then that it is one.
const handshake = 5 * time.Second

// hello is what this agent says of itself on a connection.
func (c *Config) hello(use frame.Use, connection uint64, v versions.Range) frame.Hello {
	return frame.Hello{From: v.From, To: v.To, Use: use, Protection: c.Protection, Trunk: c.Number, Incarnation: c.Incarnation, Connection: connection}
}

// say sends a HELLO. On a data connection it proves by its MAC that it is of the trunk.
func say(to io.Writer, h frame.Hello, secret *seal.Secret, d seal.Direction) error {
	if secret != nil {
		h.MAC = secret.MAC(h.Connection, d, h.AppendClaim(nil))
	}
	_, err := to.Write(h.Append(nil))
	return err
}

// hear reads a HELLO.
func hear(from net.Conn, secret *seal.Secret, d seal.Direction) (h frame.Hello, err error) {
	from.SetReadDeadline(time.Now().Add(handshake))
	defer from.SetReadDeadline(time.Time{})
	var b [frame.HelloLen]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return h, fmt.Errorf("the other agent says no HELLO: %w", err)
	}
	header, err := frame.ParseHeader(b[:])
	if err != nil {
		return h, err
	}
	if header.Type != frame.TypeHello {
		return h, fmt.Errorf("the other agent begins with %v in place of HELLO", header.Type)
	}
	if h, err = frame.ParseHello(header, b[frame.HeaderLen:]); err != nil {
		return h, err
	}
	if claim := b[:frame.HelloLen-frame.MACLen]; secret != nil && !secret.Verify(h.Connection, d, claim, h.MAC[:]) {
		return h, fmt.Errorf("the other agent's HELLO on data connection %d: %w", h.Connection, seal.ErrForged)
	}
	return h, nil
}

// agrees says why the two agents cannot work together.
func (c *Config) agrees(h frame.Hello) error {
	if h.Protection != c.Protection {
		return fmt.Errorf("the other agent protects frames by %q, this one by %q: give both the same --protect", h.Protection, c.Protection)
	}
	_, err := versions.Trunk().AgreeOn("the trunk protocol", "this agent", "the other agent", versions.Range{From: h.From, To: h.To})
	return err
}

// Greet reads the HELLO by which another agent begins a control connection.
func Greet(c *tls.Conn) (frame.Hello, error) {
	h, err := hear(c, nil, 0)
	if err == nil && h.Use != frame.Control {
		err = fmt.Errorf("the other agent's HELLO on a control connection is one of a data connection")
	}
	return h, err
}

// Answer answers a HELLO that Greet has read, and keeps the control connection until it ends, or ctx or its path does. ready is
// told the path's secret before the other agent can use it, and may refuse.
func Answer(ctx context.Context, conn *tls.Conn, h frame.Hello, c Config, ready func(seal.Secret) error) (fail error) {
	defer conn.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(c.Path.Context(), end)()
	disagreement := c.agrees(h)
	chosen := versions.Trunk()
	if disagreement == nil {
		highest := min(chosen.To, h.To)
		chosen = versions.Range{From: highest, To: highest}
	}
	secret, err := seal.Export(conn.ConnectionState())
	if err != nil {
		return err
	}
	if disagreement == nil {
		down, err := c.Path.Up(secret, h.Incarnation, chosen.To)
		if err != nil {
			return err
		}
		defer func() { down(fail) }() // when this connection ends
		if err := ready(secret); err != nil {
			return err
		}
	}
	// The other agent is told what does not fit, too: its HELLO is answered by what this one can do.
	if err := say(conn, c.hello(frame.Control, 0, chosen), nil, 0); err != nil {
		return err
	}
	if disagreement != nil {
		return disagreement
	}
	w := &watcher{conn: conn, silence: c.Silence, ping: c.wish, soon: c.Path.Rethinks()}
	return w.watch(ctx)
}

// wish is a PING of the agent that was called. Each says how many connections it wants: it is told again where one is lost with
// its control connection.
func (c *Config) wish(uint64) frame.Header { return frame.Want(c.Path.Wants()) }

// Data answers the HELLO of a data connection, which the door has verified, and serves it until it ends.
func Data(conn *net.TCPConn, h frame.Hello, secret seal.Secret, c Config) error {
	if err := say(conn, c.hello(frame.Data, h.Connection, versions.Range{From: h.To, To: h.To}), &secret, seal.ToDialer); err != nil {
		conn.Close()
		return err
	}
	return c.Path.Serve(conn, h.Connection, secret, nil)
}
