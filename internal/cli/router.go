package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

func routerCommand() *cobra.Command {
	cmd := group("router", "Look at the routers of the network")
	a := addAdmin(cmd)
	cmd.AddCommand(routerList(a), forgetCommand(a, trust.Router, "scaffold router ls"))
	return cmd
}

func routerList(a admin) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the routers, what they resolve and the rules that they hold",
		Long: `Ls lists the routers. RULES is the generation of the rules that a router has applied: behind the
one that "scaffold status" prints, it has not caught up. RESOLVED counts first packets that it gave
to an instance, REFUSED those that it answered with an error.`,
		Example: "  scaffold router ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.dialAdmin()
			if err != nil {
				return err
			}
			all, err := ask(cmd.Context(), client.ListRouters, &apiv1.ListRoutersRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			sortRouters(all.Routers)
			return a.print(cmd.OutOrStdout(), all, func(t *table) { drawRouters(t, all.Routers); drawOpen(t, all.Trust) })
		},
	}
}

func sortRouters(routers []*apiv1.Router) {
	slices.SortFunc(routers, func(x, y *apiv1.Router) int { return strings.Compare(x.Name, y.Name) })
}

func drawRouters(t *table, routers []*apiv1.Router) {
	t.row("NAME", "KIND", "STATE", "LOCATOR", "HOSTS", "LINKS", "RULES", "RESOLVED", "REFUSED")
	for _, r := range routers {
		t.row(r.Name, kind(r), r.State, r.Locator, r.Block, len(r.Links), generation(r.Generation), r.Resolved, r.Refused)
	}
}

// generation prints the number of a set of rules: the controller's start that made it, and the change
// since that start.
func generation(g uint64) string { return fmt.Sprintf("%d.%d", g>>32, uint32(g)) }

// kind says whether the router refines names or only forwards.
func kind(r *apiv1.Router) string {
	if r.Service {
		return "service"
	}
	return "network"
}
