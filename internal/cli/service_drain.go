package cli

import (
	"context"

	"github.com/spf13/cobra"

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

func serviceDrain(a admin) *cobra.Command {
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
	addMode(cmd, &req.Mode)
	cmd.Flags().BoolVar(&req.Force, "force", false, "also when it is the last instance that serves")
	cmd.Flags().BoolVar(&follow, "follow", false, "show how many flows are left, until none is")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := instanceArgs(req, args); err != nil {
			return err
		}
		if err := checkMode(req.Mode); err != nil {
			return err
		}
		if !follow {
			return a.drain(cmd, req)
		}
		return a.drainAndFollow(cmd, req)
	}
	return cmd
}

func serviceUndrain(a admin) *cobra.Command {
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
		return a.drain(cmd, req)
	}
	return cmd
}

func addMode(cmd *cobra.Command, mode *string) {
	cmd.Flags().StringVar(mode, "mode", "", "what becomes of live flows: wait or shed (default: as the service's policy says)")
}

func checkMode(mode string) error {
	switch mode {
	case "", "wait", "shed":
		return nil
	}
	return failf(ExitUsage, "", "mode %q: want wait or shed", mode)
}

// instanceArgs takes the host from --instance or, as in "drain web s1", from the second argument.
func instanceArgs(req *apiv1.DrainRequest, args []string) error {
	req.Name = args[0]
	switch {
	case len(args) == 2 && req.Host != "" && req.Host != args[1]:
		return failf(ExitUsage, "", "one host at a time: have %q and --instance %q", args[1], req.Host)
	case len(args) == 2:
		req.Host = args[1]
	case req.Host == "":
		return failf(ExitUsage, "`scaffold service show "+req.Name+"` lists its hosts", "which instance of %s? Give --instance HOST", req.Name)
	}
	return nil
}

func (a admin) drain(cmd *cobra.Command, req *apiv1.DrainRequest) error {
	return a.change(cmd, func(ctx context.Context, c apiv1connect.AdminClient, at string) (*apiv1.Service, error) {
		return ask(ctx, c.Drain, req, at, listServices)
	})
}
