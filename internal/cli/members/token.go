package members

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// TokenCommand is `scaffold token`.
func TokenCommand() *cobra.Command {
	cmd := command.Group("token", "Let machines and people into a network with keys")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(tokenCreate(a), tokenList(a), tokenRevoke(a), tokenMembers(a))
	return cmd
}

// Roles are what a token's bearer may become.
var Roles = []string{"host", "router", "admin", string(trust.Agent)}

func tokenCreate(a remote.Admin) *cobra.Command {
	req, valid := &apiv1.CreateTokenRequest{}, time.Hour
	cmd := &cobra.Command{
		Use:   "create --role host|router|admin|agent",
		Short: "Make a token, and print it this once",
		Example: `  scaffold token create --role host
  scaffold token create --role router --name r1 --for 10m --address [2001:db8::1]:23728
  scaffold token create --role host --uses 20 --for 24h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(Roles, req.Role) {
				return exit.Failf(exit.Usage, "", "--role %.40q: want host, router, admin or agent", req.Role)
			}
			if req.Uses == 0 {
				return exit.Failf(exit.Usage, "without --uses it is good once", "--uses 0: a token that nobody may use")
			}
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			req.ValidMs = valid.Milliseconds()
			answer, err := remote.Ask(cmd.Context(), client.CreateToken, req, endpoint, "")
			if err != nil {
				return err
			}
			if a.JSON() {
				return output.WriteJSON(cmd.OutOrStdout(), answer, "  ")
			}
			if _, err = fmt.Fprintln(cmd.OutOrStdout(), answer.Token); err != nil {
				return err
			}
			return tellUse(cmd.ErrOrStderr(), answer)
		},
	}
	set := cmd.Flags()
	set.StringVar(&req.Role, "role", "", "what its bearer becomes: host, router, admin, or agent (of boost)")
	set.StringVar(&req.Name, "name", "", "who alone may use it (default: anybody, under any free name)")
	set.DurationVar(&valid, "for", time.Hour, "how long it is good")
	set.Uint32Var(&req.Uses, "uses", 1, "how many may use it, once each")
	set.StringSliceVar(&req.Addresses, "address", nil, "of a controller, HOST:PORT, to be in the token; repeat for more (default: all at which the controllers are reached)")
	cmd.MarkFlagRequired("role")
	return cmd
}

// tellUse is the line to type where the token is to be used, beside the token, which is all that scripts read.
func tellUse(to io.Writer, answer *apiv1.CreateTokenResponse) error {
	t, err := trust.ParseToken(answer.Token)
	if err != nil {
		return err
	}
	where := ""
	if len(t.Addresses) == 0 {
		where = " ADDRESS" // the controller listens on its own machine alone
	}
	line := map[trust.Role]string{trust.Host: "sudo scaffold join --token %s --install%s", trust.Router: "sudo scaffold join --token %s --service --install%s", trust.Admin: "scaffold login --token %s%s",
		trust.Agent: "sudo scaffold join --token %s --door ADDRESS --port INTERFACE --install%s"}[t.Role]
	_, err = fmt.Fprintf(to, "until %s UTC, for %s: "+line+"\n", output.Second(answer.Stored.ExpiresUnix), whom(answer.Stored), answer.Token, where)
	return err
}

func whom(t *apiv1.Token) string {
	switch {
	case t.Name != "":
		return t.Role + " " + t.Name + " alone"
	case t.Uses > 1:
		return fmt.Sprintf("%d of role %s", t.Uses, t.Role)
	}
	return "one " + t.Role
}

func tokenList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List tokens, and who used them; what they open is not kept", Example: "  scaffold token ls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListTokens, &apiv1.ListTokensRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) {
				t.Row("ID", "ROLE", "FOR", "STATE", "EXPIRES", "USED BY")
				for _, k := range all.Tokens {
					var by []string
					for _, m := range k.Used {
						by = append(by, m.Name)
					}
					t.Row(k.Id, k.Role, k.Name, k.State, output.Second(k.ExpiresUnix), fmt.Sprintf("%d/%d %s", len(by), k.Uses, strings.Join(by, ", ")))
				}
			})
		},
	}
}

func tokenRevoke(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Make a token good for nothing; who has used it stays a member", Example: "  scaffold token revoke 1f3c9a0b7d2e4455", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			answer, err := remote.Ask(cmd.Context(), client.RevokeToken, &apiv1.RevokeTokenRequest{Id: args[0]}, endpoint, "scaffold token ls")
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), answer, func(*output.Table) {})
		},
	}
}

func tokenMembers(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "members", Short: "List who has a credential, and whose was revoked", Example: "  scaffold token members", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListMembers, &apiv1.ListMembersRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) {
				t.Row("ROLE", "NAME", "KEY", "SINCE")
				for _, m := range all.Members {
					t.Row(m.Role, m.Name, m.Key, output.Second(m.SinceUnix))
				}
				for _, r := range all.Revoked {
					t.Row(r.Role, r.Name, "revoked", output.Second(r.AtUnix))
				}
			})
		},
	}
}

// forgetCommand is `forget` of hosts, routers and administrators.
func forgetCommand(a remote.Admin, role trust.Role, listing string) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "forget NAME",
		Short:   "Revoke the key of a " + string(role) + " and free its name; what it has open ends at once",
		Example: "  scaffold " + string(role) + " forget old",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			answer, err := remote.Ask(cmd.Context(), client.Forget, &apiv1.ForgetRequest{Role: string(role), Name: args[0], Force: force}, endpoint, listing)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), answer, func(t *output.Table) {
				t.Row(fmt.Sprintf("%s %s is forgotten: %s; only a new key and a new token let it in again", role, args[0], command.Counts(answer.Sessions, "session ended", "sessions ended")))
			})
		},
	}
	if role == trust.Router {
		cmd.Flags().BoolVar(&force, "force", false, "also one at which hosts are attached: they look for another router")
	}
	return cmd
}
