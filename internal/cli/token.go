package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

func tokenCommand() *cobra.Command {
	cmd := group("token", "Let machines and people into a network with keys")
	a := addAdmin(cmd)
	cmd.AddCommand(tokenCreate(a), tokenList(a), tokenRevoke(a), tokenMembers(a))
	return cmd
}

func tokenCreate(a admin) *cobra.Command {
	req, valid := &apiv1.CreateTokenRequest{}, time.Hour
	cmd := &cobra.Command{
		Use:   "create --role host|router|admin",
		Short: "Make a token, and print it this once",
		Example: `  scaffold token create --role host
  scaffold token create --role router --name r1 --for 10m --address [2001:db8::1]:23728
  scaffold token create --role host --uses 20 --for 24h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if req.Uses == 0 {
				return failf(ExitUsage, "without --uses it is good once", "--uses 0: a token that nobody may use")
			}
			client, endpoint, err := a.dialTrust()
			if err != nil {
				return err
			}
			req.ValidMs = valid.Milliseconds()
			answer, err := ask(cmd.Context(), client.CreateToken, req, endpoint, "")
			if err != nil {
				return err
			}
			if a.json() {
				return writeJSON(cmd.OutOrStdout(), answer, "  ")
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), answer.Token)
			return err
		},
	}
	set := cmd.Flags()
	set.StringVar(&req.Role, "role", "", "what its bearer becomes: host, router or admin")
	set.StringVar(&req.Name, "name", "", "who alone may use it (default: anybody, under any free name)")
	set.DurationVar(&valid, "for", time.Hour, "how long it is good")
	set.Uint32Var(&req.Uses, "uses", 1, "how many may use it, once each")
	set.StringSliceVar(&req.Addresses, "address", nil, "of a controller, HOST:PORT, to be in the token; repeat for more")
	cmd.MarkFlagRequired("role")
	return cmd
}

func tokenList(a admin) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List tokens, and who used them; what they open is not kept", Example: "  scaffold token ls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.dialTrust()
			if err != nil {
				return err
			}
			all, err := ask(cmd.Context(), client.ListTokens, &apiv1.ListTokensRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), all, func(t *table) {
				t.row("ID", "ROLE", "FOR", "STATE", "EXPIRES", "USED BY")
				for _, k := range all.Tokens {
					var by []string
					for _, m := range k.Used {
						by = append(by, m.Name)
					}
					t.row(k.Id, k.Role, k.Name, k.State, second(k.ExpiresUnix), fmt.Sprintf("%d/%d %s", len(by), k.Uses, strings.Join(by, ", ")))
				}
			})
		},
	}
}

// second is a time for people; - for none.
func second(unix int64) string {
	if unix == 0 {
		return "-"
	}
	return time.Unix(unix, 0).UTC().Format(time.DateTime)
}

func tokenRevoke(a admin) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Make a token good for nothing; who has used it stays a member", Example: "  scaffold token revoke 1f3c9a0b7d2e4455", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.dialTrust()
			if err != nil {
				return err
			}
			answer, err := ask(cmd.Context(), client.RevokeToken, &apiv1.RevokeTokenRequest{Id: args[0]}, endpoint, "scaffold token ls")
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), answer, func(*table) {})
		},
	}
}

func tokenMembers(a admin) *cobra.Command {
	return &cobra.Command{
		Use: "members", Short: "List who has a credential, and whose was revoked", Example: "  scaffold token members", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.dialTrust()
			if err != nil {
				return err
			}
			all, err := ask(cmd.Context(), client.ListMembers, &apiv1.ListMembersRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), all, func(t *table) {
				t.row("ROLE", "NAME", "KEY", "SINCE")
				for _, m := range all.Members {
					t.row(m.Role, m.Name, m.Key, second(m.SinceUnix))
				}
				for _, r := range all.Revoked {
					t.row(r.Role, r.Name, "revoked", second(r.AtUnix))
				}
			})
		},
	}
}

// forgetCommand is `forget` of hosts, routers and administrators.
func forgetCommand(a admin, role trust.Role, listing string) *cobra.Command {
	return &cobra.Command{
		Use:     "forget NAME",
		Short:   "Revoke the key of a " + string(role) + " and free its name; what it has open ends at once",
		Example: "  scaffold " + string(role) + " forget old",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.dialTrust()
			if err != nil {
				return err
			}
			answer, err := ask(cmd.Context(), client.Forget, &apiv1.ForgetRequest{Role: string(role), Name: args[0]}, endpoint, listing)
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), answer, func(t *table) {
				t.row(fmt.Sprintf("%s %s is forgotten: %d sessions ended; only a new key and a new token let it in again", role, args[0], answer.Sessions))
			})
		},
	}
}
