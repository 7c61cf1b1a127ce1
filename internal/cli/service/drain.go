package service

import (
	"context"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/draining"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const aboutDrain = `Drain gives an instance no new flows. What becomes of those that it has is the mode:

  wait  they go on until they end by themselves (the default, unless the service's policy says else)
  shed  they are failed over by the service's policy: with "continue" another instance that can resume
        goes on with them, with "reset" their clients are told at once and may try again

The drain stays until "scaffold service undrain" takes it back, also when the program or the host's
daemon is started again. With --follow the command stays until no flow is left; Ctrl-C ends the
watching, not the drain.`

func serviceDrain(a remote.Admin) *cobra.Command {
	req := &apiv1.DrainRequest{}
	var follow bool
	cmd := &cobra.Command{
		Use:   "drain NAME --instance HOST",
		Short: "Take a host's instance of a service out of service",
		Long:  aboutDrain,
		Example: `  scaffold service drain web --instance s1 --follow   # then s1 can be stopped
  scaffold service drain web --instance s1 --mode shed
  scaffold service drain web s1`,
		Args: cobra.RangeArgs(1, 2),
	}
	cmd.Flags().StringVar(&req.Host, "instance", "", "host of the instance")
	draining.AddMode(cmd, &req.Mode)
	cmd.Flags().BoolVar(&req.Force, "force", false, "also when it is the last instance that serves")
	cmd.Flags().BoolVar(&follow, "follow", false, "show how many flows are left, until none is")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := instanceArgs(req, args); err != nil {
			return err
		}
		if err := draining.CheckMode(req.Mode); err != nil {
			return err
		}
		if !follow {
			return drainService(a, cmd, req)
		}
		return drainAndFollow(a, cmd, req)
	}
	return cmd
}

func serviceUndrain(a remote.Admin) *cobra.Command {
	req := &apiv1.DrainRequest{Undrain: true}
	cmd := &cobra.Command{
		Use:     "undrain NAME --instance HOST",
		Short:   "Give a drained instance new flows again",
		Example: "  scaffold service undrain web --instance s1",
		Args:    cobra.RangeArgs(1, 2),
	}
	cmd.Flags().StringVar(&req.Host, "instance", "", "host of the instance")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := instanceArgs(req, args); err != nil {
			return err
		}
		return drainService(a, cmd, req)
	}
	return cmd
}

// instanceArgs takes the host from --instance or, as in "drain web s1", from the second argument.
func instanceArgs(req *apiv1.DrainRequest, args []string) error {
	req.Name = args[0]
	switch {
	case len(args) == 2 && req.Host != "" && req.Host != args[1]:
		return exit.Failf(exit.Usage, "", "one host at a time: have %q and --instance %q", args[1], req.Host)
	case len(args) == 2:
		req.Host = args[1]
	case req.Host == "":
		return exit.Failf(exit.Usage, "`scaffold service show "+req.Name+"` lists its hosts", "which instance of %s? Give --instance HOST", req.Name)
	}
	return nil
}

func drainService(a remote.Admin, cmd *cobra.Command, req *apiv1.DrainRequest) error {
	return change(a, cmd, func(ctx context.Context, c apiv1connect.AdminClient, at string) (*apiv1.Service, error) {
		return remote.Ask(ctx, c.Drain, req, at, remote.ListServices)
	})
}

// drainAndFollow drains, and looks on until no flow is left. Who interrupts it has seen enough; the drain
// stays.
func drainAndFollow(a remote.Admin, cmd *cobra.Command, req *apiv1.DrainRequest) error {
	client, endpoint, err := a.DialAdmin()
	if err != nil {
		return err
	}
	if _, err := remote.Ask(cmd.Context(), client.Drain, req, endpoint, remote.ListServices); err != nil {
		return err
	}
	what := req.Name + " on " + req.Host
	err = draining.Follow(cmd, what, func(ctx context.Context) (uint32, error) {
		s, err := remote.Ask(ctx, client.GetService, &apiv1.GetServiceRequest{Name: req.Name}, endpoint, remote.ListServices)
		if err != nil {
			return 0, err
		}
		return left(s, req.Host)
	})
	if err != nil || !a.JSON() {
		return err
	}
	s, err := remote.Ask(cmd.Context(), client.GetService, &apiv1.GetServiceRequest{Name: req.Name}, endpoint, remote.ListServices)
	if err != nil {
		return err
	}
	return output.WriteJSON(cmd.OutOrStdout(), s, "  ")
}

// left counts the flows of a host's instances. An instance that is gone has none.
func left(s *apiv1.Service, host string) (flows uint32, err error) {
	for _, i := range s.Instances {
		if i.Host == host && i.State == "serving" {
			return 0, exit.Failf(exit.Refused, "`scaffold events` says who did it", "%s on %s serves again: the drain was taken back", s.Name, host)
		}
		if i.Host == host {
			flows += i.Flows
		}
	}
	return flows, nil
}
