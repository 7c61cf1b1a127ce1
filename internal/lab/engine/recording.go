package engine

import (
	"context"
	"fmt"
	"io"
	"strings"

	"scaffold.dev/scaffold/internal/lab/emud"
)

// numberBetween is the number of the first emulated link between two nodes.
func (e *Engine) numberBetween(a, b string) (int, error) {
	for _, c := range e.plan.Cable {
		if c.Emulated != nil && (c.Ends == [2]string{a, b} || c.Ends == [2]string{b, a}) {
			return e.plan.EmulatedNumber(c), nil
		}
	}
	return 0, &emud.NotFoundError{Text: fmt.Sprintf("lab %s has no emulated link between %q and %q", e.plan.File.Name, a, b)}
}

// Capture writes what crosses an emulated link, in both directions, as a pcap file, until ctx ends.
func (e *Engine) Capture(ctx context.Context, a, b string, w io.Writer) error {
	number, err := e.numberBetween(a, b)
	if err != nil {
		return err
	}
	return e.Client().Capture(ctx, number, w)
}

// Replay lets the frames of a recording arrive at a port, speed times as fast as they were recorded. The port is
// written NODE:NEIGHBOUR: they arrive at the node as if its neighbour had sent them.
func (e *Engine) Replay(ctx context.Context, port string, speed float64, recording io.Reader) (r emud.Replay, err error) {
	node, far, ok := strings.Cut(port, ":")
	if !ok {
		return r, fmt.Errorf("port %q; expected NODE:NEIGHBOUR, such as r7:r8", port)
	}
	number, err := e.numberBetween(node, far)
	if err != nil {
		return r, err
	}
	return e.Client().Replay(ctx, number, node, speed, recording)
}
