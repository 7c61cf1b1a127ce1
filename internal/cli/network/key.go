package network

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func netKey(a remote.Admin) *cobra.Command {
	cmd := command.Group("key", "Replace the key by which the network certifies its members")
	cmd.Long = `The network's key certifies hosts, routers, administrators, controllers and locators; tokens carry its
hash. To replace it, at any time and with everything running:

  scaffold net key rotate     a next key is made, and all members learn it; after a minute, when all that
                              are here have, it certifies, and they get new certificates; both count
  scaffold net key ls         shows how far it is, and who was not here: they learn it when they come
  scaffold net key retire ID  the key of before counts no more`
	cmd.AddCommand(netKeyList(a), netKeyRotate(a), netKeyRetire(a))
	return cmd
}

func netKeyList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "Show the network's keys, and who does not have a certificate by the newest", Example: "  scaffold net key ls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			state, err := remote.Ask(cmd.Context(), client.GetAuthority, &apiv1.GetAuthorityRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			return printKeys(a, cmd, state)
		},
	}
}

func netKeyRotate(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Make the network's next key: it certifies in a minute, and the one of before counts until it is retired", Example: "  scaffold net key rotate", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			state, err := remote.Ask(cmd.Context(), client.RotateAuthority, &apiv1.RotateAuthorityRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			return printKeys(a, cmd, state)
		},
	}
}

func netKeyRetire(a remote.Admin) *cobra.Command {
	req := &apiv1.RetireAuthorityRequest{}
	cmd := &cobra.Command{
		Use:   "retire ID",
		Short: "Take away a key of the network that does not certify: the former one, or the next one, which undoes rotate",
		Long: `Retire takes a key of the network away. Nothing that it certified counts any more: who has not been
here since the new key certifies would have to join again with a token, and is named; --force does it
all the same, which is right where the key is known to others.`,
		Example: "  scaffold net key retire 5f0c9a1b22d3e4f6",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			req.Id = args[0]
			state, err := remote.Ask(cmd.Context(), client.RetireAuthority, req, endpoint, "scaffold net key ls")
			if err != nil {
				return err
			}
			return printKeys(a, cmd, state)
		},
	}
	cmd.Flags().BoolVar(&req.Force, "force", false, "although members have to join again")
	return cmd
}

func printKeys(a remote.Admin, cmd *cobra.Command, state *apiv1.AuthorityState) error {
	return a.Print(cmd.OutOrStdout(), state, func(t *output.Table) {
		t.Row("KEY", "STATE", "SINCE")
		for _, k := range state.Keys {
			t.Row(k.Id, k.State, output.Second(k.SinceUnix))
		}
		var behind []string
		for _, m := range state.Behind {
			behind = append(behind, m.Role+" "+m.Name)
		}
		if len(behind) > 0 {
			t.Row(fmt.Sprintf("not here since the newest key certifies: %s", strings.Join(behind, ", ")))
		}
		if len(state.Unheard) > 0 {
			t.Row(fmt.Sprintf("the next key waits for hosts that are here and have not heard of it: %s", strings.Join(state.Unheard, ", ")))
		}
		if state.Tokens > 0 {
			t.Row(command.Counts(state.Tokens, "token that is open was made for the former key, and ends with it", "tokens that are open were made for the former key, and end with it"))
		}
	})
}
