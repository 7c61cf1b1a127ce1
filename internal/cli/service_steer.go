package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

func serviceWeight(a admin) *cobra.Command {
	return &cobra.Command{
		Use:   "weight NAME HOST=WEIGHT...",
		Short: "Set which share of new flows each host gets",
		Long: `Weight sets the weights of hosts for one service. A host gets its weight divided by the sum of all;
0 gives it no new flow and leaves the ones that it has. Weights go from 0 to 65535.`,
		Example: `  scaffold service weight web s1=3 s2=1 s3=0`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			weights, err := parseWeights(args[1:])
			if err != nil {
				return err
			}
			return a.change(cmd, func(ctx context.Context, c apiv1connect.AdminClient, at string) (s *apiv1.Service, err error) {
				for _, w := range weights {
					w.Name = args[0]
					if s, err = ask(ctx, c.SetWeight, w, at, listServices); err != nil {
						return nil, err
					}
				}
				return s, nil
			})
		},
	}
}

// parseWeights reads all before the first is sent: a typing mistake changes nothing.
func parseWeights(args []string) ([]*apiv1.SetWeightRequest, error) {
	var all []*apiv1.SetWeightRequest
	for _, arg := range args {
		host, text, ok := strings.Cut(arg, "=")
		weight, err := strconv.ParseUint(text, 10, 16)
		if !ok || host == "" || err != nil {
			return nil, failf(ExitUsage, "as in: scaffold service weight web s1=3 s2=1", "%q: want HOST=WEIGHT with a weight from 0 to 65535", arg)
		}
		all = append(all, &apiv1.SetWeightRequest{Host: host, Weight: uint32(weight)})
	}
	return all, nil
}

func serviceRemove(a admin) *cobra.Command {
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
		client, endpoint, err := a.dialAdmin()
		if err != nil {
			return err
		}
		req.Name = args[0]
		answer, err := ask(cmd.Context(), client.RemoveService, req, endpoint, listServices)
		if err != nil {
			return err
		}
		return a.print(cmd.OutOrStdout(), answer, func(t *table) { t.row("service " + req.Name + " is gone") })
	}
	return cmd
}
