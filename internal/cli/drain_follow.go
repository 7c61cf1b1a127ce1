package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// Hosts report their flows about once a second. A count of none is believed once it was told for longer
// than that.
const (
	followEvery = 300 * time.Millisecond
	followNone  = 5 // looks
)

// drainAndFollow drains, and looks on until no flow is left. Who interrupts it has seen enough; the drain
// stays.
func (a admin) drainAndFollow(cmd *cobra.Command, req *apiv1.DrainRequest) error {
	client, endpoint, err := a.dialAdmin()
	if err != nil {
		return err
	}
	if _, err := ask(cmd.Context(), client.Drain, req, endpoint, listServices); err != nil {
		return err
	}
	what := req.Name + " on " + req.Host
	err = follow(cmd, what, func(ctx context.Context) (uint32, error) {
		s, err := ask(ctx, client.GetService, &apiv1.GetServiceRequest{Name: req.Name}, endpoint, listServices)
		if err != nil {
			return 0, err
		}
		return left(s, req.Host)
	})
	if err != nil || !a.json() {
		return err
	}
	s, err := ask(cmd.Context(), client.GetService, &apiv1.GetServiceRequest{Name: req.Name}, endpoint, listServices)
	if err != nil {
		return err
	}
	return writeJSON(cmd.OutOrStdout(), s, "  ")
}

// left counts the flows of a host's instances. An instance that is gone has none.
func left(s *apiv1.Service, host string) (flows uint32, err error) {
	for _, i := range s.Instances {
		if i.Host == host && i.State == "serving" {
			return 0, failf(ExitRefused, "`scaffold events` says who did it", "%s on %s serves again: the drain was taken back", s.Name, host)
		}
		if i.Host == host {
			flows += i.Flows
		}
	}
	return flows, nil
}

// follow prints how many flows are left whenever that changes.
func follow(cmd *cobra.Command, what string, look func(context.Context) (uint32, error)) error {
	shown := countdown{w: cmd.ErrOrStderr(), what: what}
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
			shown.flows(flows)
		}
		sleep(cmd.Context(), followEvery)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: no flow is left\n", what)
	return nil
}

// A countdown prints a line when the count changes.
type countdown struct {
	w     io.Writer
	what  string
	last  uint32
	begun bool
}

func (c *countdown) flows(n uint32) {
	if !c.begun || n != c.last {
		fmt.Fprintf(c.w, "%s: %s left\n", c.what, count(n, "flow"))
	}
	c.last, c.begun = n, true
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
