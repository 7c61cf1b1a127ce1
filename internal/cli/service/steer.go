package service

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

func serviceWeight(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:   "weight NAME HOST=WEIGHT...",
		Short: "Set which share of new flows each host gets",
		Long: `Weight sets the weights of hosts for one service. A host gets its weight divided by the sum of all;
0 gives it no new flow and leaves the ones that it has. Weights go from 0 to 65535. All that are named are
changed, or none.`,
		Example: `  scaffold service weight web s1=3 s2=1 s3=0`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			weights, err := parseWeights(args[1:])
			if err != nil {
				return err
			}
			return change(a, cmd, func(ctx context.Context, c apiv1connect.AdminClient, at string) (*apiv1.Service, error) {
				if len(weights) == 1 { // what a host may do for itself, and older controllers know
					one := &apiv1.SetWeightRequest{Name: args[0], Host: weights[0].Host, Weight: weights[0].Weight}
					return remote.Ask(ctx, c.SetWeight, one, at, remote.ListServices)
				}
				return remote.Ask(ctx, c.SetWeights, &apiv1.SetWeightsRequest{Name: args[0], Weights: weights}, at, remote.ListServices)
			})
		},
	}
}

// parseWeights reads all before the first is sent: a typing mistake changes nothing.
func parseWeights(args []string) ([]*apiv1.HostWeight, error) {
	var all []*apiv1.HostWeight
	for _, arg := range args {
		host, text, ok := strings.Cut(arg, "=")
		weight, err := strconv.ParseUint(text, 10, 16)
		if !ok || host == "" || err != nil {
			return nil, exit.Failf(exit.Usage, "as in: scaffold service weight web s1=3 s2=1", "%q: want HOST=WEIGHT with a weight from 0 to 65535", arg)
		}
		if slices.ContainsFunc(all, func(w *apiv1.HostWeight) bool { return w.Host == host }) {
			return nil, exit.Failf(exit.Usage, "one weight for each host", "%s stands twice", host)
		}
		all = append(all, &apiv1.HostWeight{Host: host, Weight: uint32(weight)})
	}
	return all, nil
}

func serviceRemove(a remote.Admin) *cobra.Command {
	req := &apiv1.RemoveServiceRequest{}
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Remove a service: its name and address cease to exist",
		Example: "  scaffold service rm web\n  scaffold service rm web --force   # also while programs serve it",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&req.Force, "force", false, "also while it has instances")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, endpoint, err := a.DialAdmin()
		if err != nil {
			return err
		}
		req.Name = args[0]
		answer, err := remote.Ask(cmd.Context(), client.RemoveService, req, endpoint, remote.ListServices)
		if err != nil {
			return err
		}
		return a.Print(cmd.OutOrStdout(), answer, func(t *output.Table) { t.Row("service " + req.Name + " is removed") })
	}
	return cmd
}
