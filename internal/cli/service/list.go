package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
)

func serviceList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the services and how many instances they have",
		Example: `  scaffold service ls
  scaffold service ls -o json | jq -r '.services[].name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialAdmin()
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListServices, &apiv1.ListServicesRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			slices.SortFunc(all.Services, func(x, y *apiv1.Service) int { return strings.Compare(x.Name, y.Name) })
			return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawServices(t, all.Services) })
		},
	}
}

func drawServices(t *output.Table, services []*apiv1.Service) {
	t.Row("NAME", "ADDRESS", "SERVING", "INSTANCES", "HOSTS", "PORTS", "FLOWS", "AGE")
	for _, s := range services {
		var serving int
		var flows uint32
		hosts, ports := map[string]bool{}, map[string]bool{}
		for _, i := range s.Instances {
			if i.Effective > 0 {
				serving++
			}
			flows += i.Flows
			hosts[i.Host], ports[fmt.Sprintf("%s/%d", i.Proto, i.Port)] = true, true
		}
		t.Row(s.Name, s.Address, serving, len(s.Instances), len(hosts), strings.Join(output.Sorted(ports), ","), flows, output.Age(s.CreatedUnixMs))
	}
}

func serviceShow(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME|SERVICEID|ADDRESS",
		Short: "Show one service, its policy and each of its instances",
		Long: `Show prints a service and its instances. WEIGHT is what was set; EFFECTIVE is what the routers use:
0 while an instance drains, is suspected dead or says that it is not ready, and WHY tells the reason.`,
		Example: `  scaffold service show web
  scaffold service show fd5c::1:c0:ffee:c0:ffee -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(a, cmd, func(ctx context.Context, c apiv1connect.AdminClient, at string) (*apiv1.Service, error) {
				return remote.Ask(ctx, c.GetService, &apiv1.GetServiceRequest{Name: args[0]}, at, remote.ListServices)
			})
		},
	}
}
