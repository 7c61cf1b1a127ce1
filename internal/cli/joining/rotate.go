package joining

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/boost/boostd"
	"scaffold.dev/scaffold/internal/host/hostd"
	"scaffold.dev/scaffold/internal/router/routerd"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// RotateCommand is `scaffold rotate`.
func RotateCommand() *cobra.Command {
	var socket, state string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Give this machine another key in its network; no flow and no registration notices",
		Long: `Rotate has the daemon of this machine, a host or a router, make another key and get a credential for
it from the controller. The daemon joins with it at once; the key of before counts beside it for a
minute and is revoked then. Daemons do the same by themselves when a key is old (--key-for).

For an agent of boost, which has no socket, the command gets the key itself, and the agent takes it up
within seconds: connections that it carries go on. Without --socket and --state an agent gets another key
only where neither hostd nor routerd answers.

Whoever may have read the key can still have used it: a machine that was broken into is to be
forgotten (scaffold host forget, router forget, boost agent forget) and joined anew.`,
		Example: "  scaffold rotate\n  scaffold rotate --socket /run/scaffold/routerd.sock    # where host and router run on one machine\n  scaffold rotate --state /var/lib/scaffold/boostd       # of the agent, where a host or router runs beside it",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if state != "" {
				return rotateAgent(cmd, trust.Directory(state))
			}
			if socket == "" {
				i := slices.IndexFunc(daemonSockets, remote.Accepts)
				switch agent := trust.Directory(boostd.DefaultCredentials); {
				case i >= 0:
					socket = daemonSockets[i]
				case agent.Member():
					return rotateAgent(cmd, agent)
				default:
					return exit.Failf(exit.Unreachable, "the daemon gets the key: start it (systemctl start scaffold-hostd, or scaffold-routerd); --socket names another socket, --state the directory of an agent of boost", "no hostd and no routerd answers on this machine, and it has no agent's credential")
				}
			}
			http, base, err := api.Dial("unix:" + socket)
			if err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			answer, err := remote.Ask(cmd.Context(), apiv1connect.NewLocalClient(http, base).RotateKey, &apiv1.RotateKeyRequest{}, socket, "")
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s has the key %08x now; the one of before counts for another minute\n", answer.Role, answer.Name, wire.KeyID(ed25519.PublicKey(answer.Key)))
			return nil
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the daemon's socket (default: of hostd, else of routerd)")
	cmd.Flags().StringVar(&state, "state", "", "of an agent of boost: directory of its key and certificates (default "+boostd.DefaultCredentials+", where neither hostd nor routerd answers)")
	cmd.MarkFlagDirname("state")
	command.Exclusive(cmd, "socket state")
	return cmd
}

// daemonSockets are where the daemons of this machine are.
var daemonSockets = []string{hostd.DefaultSocket, routerd.DefaultSocket}
