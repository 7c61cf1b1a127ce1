package members

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/views"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// RouterCommand is `scaffold router`.
func RouterCommand() *cobra.Command {
	cmd := command.Group("router", "Look at the routers of the network")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(routerList(a), forgetCommand(a, trust.Router, "scaffold router ls"))
	return cmd
}

func routerList(a remote.Admin) *cobra.Command {
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
			client, endpoint, err := a.DialAdmin()
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListRouters, &apiv1.ListRoutersRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			views.SortRouters(all.Routers)
			return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawRouters(t, all.Routers); views.Open(t, all.Trust) })
		},
	}
}

func drawRouters(t *output.Table, routers []*apiv1.Router) {
	t.Row("NAME", "KIND", "STATE", "LOCATOR", "HOSTS", "LINKS", "RULES", "RESOLVED", "REFUSED")
	for _, r := range routers {
		t.Row(r.Name, views.Kind(r), r.State, r.Locator, r.Block, len(r.Links), views.Generation(r.Generation), r.Resolved, r.Refused)
	}
}
