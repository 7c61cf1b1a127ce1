package draining

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
)

// Hosts report their flows about once a second. A count of none is believed once it was told for longer
// than that.
const (
	followEvery = 300 * time.Millisecond
	followNone  = 5 // looks
)

// Follow prints how many flows are left whenever that changes.
func Follow(cmd *cobra.Command, what string, look func(context.Context) (uint32, error)) error {
	shown := NewCountdown(cmd.ErrOrStderr(), what)
	for none := 0; none < followNone; {
		flows, err := look(cmd.Context())
		if cmd.Context().Err() != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: no longer watched; the drain goes on\n", what)
			return nil
		}
		if err != nil {
			return err
		}
		if none++; flows > 0 {
			none = 0
			shown.Flows(flows)
		}
		sleep(cmd.Context(), followEvery)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: no flow is left\n", what)
	return nil
}

// A Countdown prints a line when the count changes.
type Countdown struct {
	w     io.Writer
	what  string
	last  uint32
	begun bool
}

// NewCountdown tells w of what drains.
func NewCountdown(w io.Writer, what string) *Countdown { return &Countdown{w: w, what: what} }

// Begun reports whether there was a count.
func (c *Countdown) Begun() bool { return c.begun }

// Flows is how many are left now.
func (c *Countdown) Flows(n uint32) {
	if !c.begun || n != c.last {
		fmt.Fprintf(c.w, "%s: %s left\n", c.what, command.Count(n, "flow"))
	}
	c.last, c.begun = n, true
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
