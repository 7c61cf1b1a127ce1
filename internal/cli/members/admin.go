package members

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

const listAdmins = "scaffold admin ls"

// AdminCommand is `scaffold admin`.
func AdminCommand() *cobra.Command {
	cmd := command.Group("admin", "Look at the administrators of a network with keys, and revoke their credentials")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(adminList(a), forgetCommand(a, trust.Admin, listAdmins))
	return cmd
}

func adminList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List who has logged in as an administrator", Example: "  scaffold admin ls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListMembers, &apiv1.ListMembersRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			only := &apiv1.ListMembersResponse{}
			for _, m := range all.Members {
				if m.Role == string(trust.Admin) {
					only.Members = append(only.Members, m)
				}
			}
			return a.Print(cmd.OutOrStdout(), only, func(t *output.Table) {
				t.Row("NAME", "KEY", "SINCE")
				for _, m := range only.Members {
					t.Row(m.Name, m.Key, output.Second(m.SinceUnix))
				}
			})
		},
	}
}
