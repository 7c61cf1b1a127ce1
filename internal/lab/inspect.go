package lab

import (
	"context"
	"fmt"
	"io"
	"strings"

	"scaffold.dev/scaffold/internal/emud"
)

// engineOf is a client of the engine for something about a router inside it.
func (l *Lab) engineOf(router string) (*emud.Client, error) {
	n := l.File.Node(router)
	switch {
	case n == nil:
		return nil, &emud.NotFoundError{Text: fmt.Sprintf("lab %s has no node %q; it has %s", l.File.Name, router, l.File.names())}
	case !n.Kind.engine():
		return nil, &emud.NotFoundError{Text: fmt.Sprintf("%s is %s; handlers are those of routers inside the engine", router, n.Kind.one())}
	}
	return l.Engine(), nil
}

// Handlers are what can be read or written of a router inside the engine.
func (l *Lab) Handlers(ctx context.Context, router string) ([]emud.HandlerState, error) {
	c, err := l.engineOf(router)
	if err != nil {
		return nil, err
	}
	return c.Handlers(ctx, router)
}

// GetHandler reads one.
func (l *Lab) GetHandler(ctx context.Context, router, handler string) (string, error) {
	c, err := l.engineOf(router)
	if err != nil {
		return "", err
	}
	return c.Get(ctx, router, handler)
}

// SetHandler writes one.
func (l *Lab) SetHandler(ctx context.Context, router, handler, value string) error {
	c, err := l.engineOf(router)
	if err != nil {
		return err
	}
	return c.Set(ctx, router, handler, value)
}

// engineLinkBetween is the number of the first emulated link between two nodes.
func (l *Lab) engineLinkBetween(a, b string) (int, error) {
	for _, c := range l.plan.Cable {
		if c.Emulated != nil && (c.Ends == [2]string{a, b} || c.Ends == [2]string{b, a}) {
			return l.plan.emulatedNumber(c), nil
		}
	}
	return 0, &emud.NotFoundError{Text: fmt.Sprintf("lab %s has no emulated link between %q and %q", l.File.Name, a, b)}
}

// Capture writes what crosses an emulated link, in both directions, as a pcap file, until ctx ends.
func (l *Lab) Capture(ctx context.Context, a, b string, w io.Writer) error {
	number, err := l.engineLinkBetween(a, b)
	if err != nil {
		return err
	}
	return l.Engine().Capture(ctx, number, w)
}

// Replay lets the frames of a recording arrive at a port, speed times as fast as they were recorded. The port is
// written NODE:NEIGHBOUR: they arrive at the node as if its neighbour had sent them.
func (l *Lab) Replay(ctx context.Context, port string, speed float64, recording io.Reader) (r emud.Replay, err error) {
	node, far, ok := strings.Cut(port, ":")
	if !ok {
		return r, fmt.Errorf("port %q; expected NODE:NEIGHBOUR, such as r7:r8", port)
	}
	number, err := l.engineLinkBetween(node, far)
	if err != nil {
		return r, err
	}
	return l.Engine().Replay(ctx, number, node, speed, recording)
}
