package cli

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/hostd"
	"scaffold.dev/scaffold/internal/routerd"
	"scaffold.dev/scaffold/internal/trust"
)

func leaveCommand() *cobra.Command {
	var state string
	var offline bool
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Take this machine out of its network for good: its key is revoked and removed",
		Long: `Leave is the opposite of join. Stop the daemon first: its last word is a goodbye that costs no flow of
others. Then the controller forgets this machine, and its key and certificates are removed here.`,
		Example: "  scaffold leave\n  scaffold leave --offline    # the controller is not reached; scaffold host forget NAME there does the rest",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dirs := []string{state}
			if state == "" {
				dirs = []string{hostd.DefaultStateDir, routerd.DefaultCredentials}
			}
			for _, dir := range dirs {
				who, err := leaveBy(cmd.Context(), trust.Directory(dir), offline)
				if errors.Is(err, trust.ErrNone) {
					continue
				}
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "%v has left its network\n", who)
				}
				return err
			}
			return failf(ExitNotFound, "--state names the directory, if it is another", "this machine has joined no network with keys")
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "directory of key and certificates (default /var/lib/scaffold/hostd or routerd)")
	cmd.Flags().BoolVar(&offline, "offline", false, "remove what is here without telling the controller")
	return cmd
}

func leaveBy(ctx context.Context, dir trust.Directory, offline bool) (trust.Identity, error) {
	m, err := dir.Load()
	if err != nil {
		return trust.Identity{}, err
	}
	who := m.Who()
	if !offline {
		if err := forgetMe(ctx, dir, m); err != nil {
			return who, err
		}
	}
	return who, dir.Forget()
}

// forgetMe has a controller forget the member. One that did before says so, which is as good.
func forgetMe(ctx context.Context, dir trust.Directory, m *trust.Member) error {
	last := failf(ExitUnreachable, "--offline leaves without it", "no address of a controller is known here")
	for _, address := range dir.Addresses() {
		client, err := trustClient(address, m.Config())
		if err != nil {
			return err
		}
		once, cancel := context.WithTimeout(ctx, answerTime)
		_, err = client.Forget(once, connect.NewRequest(&apiv1.ForgetRequest{Role: string(m.Who().Role), Name: m.Who().Name}))
		cancel()
		if err == nil || connect.CodeOf(err) == connect.CodeUnauthenticated || connect.CodeOf(err) == connect.CodeCanceled {
			return nil
		}
		last = failf(ExitUnreachable, "--offline leaves without it, and `scaffold "+string(m.Who().Role)+" forget` does the rest there", "no controller at %s: %s", address, said(err))
	}
	return last
}
