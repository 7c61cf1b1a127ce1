package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

func serviceList(a admin) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the services and how many instances they have",
		Example: `  scaffold service ls
  scaffold service ls -o json | jq -r '.services[].name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.dialAdmin()
			if err != nil {
				return err
			}
			all, err := ask(cmd.Context(), client.ListServices, &apiv1.ListServicesRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			slices.SortFunc(all.Services, func(x, y *apiv1.Service) int { return strings.Compare(x.Name, y.Name) })
			return a.print(cmd.OutOrStdout(), all, func(t *table) { drawServices(t, all.Services) })
		},
	}
}

func drawServices(t *table, services []*apiv1.Service) {
	t.row("NAME", "ADDRESS", "SERVING", "INSTANCES", "HOSTS", "PORTS", "FLOWS", "AGE")
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
		t.row(s.Name, s.Address, serving, len(s.Instances), len(hosts), strings.Join(sorted(ports), ","), flows, age(s.CreatedUnixMs))
	}
}

func serviceShow(a admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME|SERVICEID|ADDRESS",
		Short: "Show one service, its policy and each of its instances",
		Long: `Show prints a service and its instances. WEIGHT is what was set; EFFECTIVE is what the routers use:
0 while an instance drains, is suspected dead or says that it is not ready, and WHY tells the reason.`,
		Example: `  scaffold service show web
  scaffold service show fd5c::1:c0:ffee:c0:ffee -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.change(cmd, func(ctx context.Context, c apiv1connect.AdminClient, at string) (*apiv1.Service, error) {
				return ask(ctx, c.GetService, &apiv1.GetServiceRequest{Name: args[0]}, at, listServices)
			})
		},
	}
}
