package cli

import (
	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

const listAdmins = "scaffold admin ls"

func adminCommand() *cobra.Command {
	cmd := group("admin", "Look at the administrators of a network with keys, and revoke their credentials")
	a := addAdmin(cmd)
	cmd.AddCommand(adminList(a), forgetCommand(a, trust.Admin, listAdmins))
	return cmd
}

func adminList(a admin) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List who has logged in as an administrator", Example: "  scaffold admin ls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.dialTrust()
			if err != nil {
				return err
			}
			all, err := ask(cmd.Context(), client.ListMembers, &apiv1.ListMembersRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			only := &apiv1.ListMembersResponse{}
			for _, m := range all.Members {
				if m.Role == string(trust.Admin) {
					only.Members = append(only.Members, m)
				}
			}
			return a.print(cmd.OutOrStdout(), only, func(t *table) {
				t.row("NAME", "KEY", "SINCE")
				for _, m := range only.Members {
					t.row(m.Name, m.Key, second(m.SinceUnix))
				}
			})
		},
	}
}
