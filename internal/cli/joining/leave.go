package joining

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/boostd"
	"scaffold.dev/scaffold/internal/host/hostd"
	"scaffold.dev/scaffold/internal/router/routerd"
	"scaffold.dev/scaffold/internal/trust"
)

// leaveAgent has an agent of boost leave, on a machine that may be a host or router as well.
const leaveAgent = "scaffold leave --state " + boostd.DefaultCredentials + " --config /etc/scaffold/boostd.yaml"

// LeaveCommand is `scaffold leave`.
func LeaveCommand() *cobra.Command {
	var state, config string
	var offline, force bool
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Take this machine out of its network for good: its key is revoked and removed",
		Long: `Leave is the opposite of join. Stop the daemon first: its last word is a goodbye that costs no flow of
others. Then the controller forgets this machine, and its key and certificates are removed here. The daemon's
configuration is moved aside (.left), and what was there before join comes back.`,
		Example: "  scaffold leave\n  scaffold leave --offline    # the controller is not reached; scaffold host forget NAME there does the rest\n  " + leaveAgent + "    # an agent of boost",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dirs := []string{state}
			if state == "" {
				dirs = []string{hostd.DefaultStateDir, routerd.DefaultCredentials}
			}
			for _, dir := range dirs {
				who, err := leaveBy(cmd.Context(), trust.Directory(dir), offline, force)
				if errors.Is(err, trust.ErrNone) {
					continue
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%v has left its network\n", who)
				if config == "" && state == "" {
					config = (&joining{tokenUse: tokenUse{token: trust.Token{Role: who.Role}}}).role().Config()
				}
				return setAside(cmd, config)
			}
			if state == "" && trust.Directory(boostd.DefaultCredentials).Member() { // who says leave twice means the host, or router, twice
				return exit.Failf(exit.NotFound, leaveAgent+" takes it out of the network", "of a network with keys this machine has the credential of an agent of boost, and none of a host or router")
			}
			return exit.Failf(exit.NotFound, "a machine leaves an open network by `scaffold uninstall host` (or router, agent); --state names the directory of its key and certificates, if that is another", "this machine has no credential to give back: it joined no network with keys")
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "directory of key and certificates (default /var/lib/scaffold/hostd or routerd)")
	cmd.Flags().StringVar(&config, "config", "", "the daemon's configuration, to be moved aside (default /etc/scaffold/hostd.yaml or routerd.yaml; with --state: none)")
	cmd.Flags().BoolVar(&offline, "offline", false, "remove what is here without telling the controller")
	cmd.Flags().BoolVar(&force, "force", false, "also a router at which hosts are attached: they look for another one")
	command.Exclusive(cmd, "offline force") // nobody is asked who could refuse
	return cmd
}

// setAside takes back what join did to a daemon's configuration: a daemon that starts with it would ask to be let in,
// again and again.
func setAside(cmd *cobra.Command, config string) error {
	if config == "" {
		return nil
	}
	switch err := os.Rename(config, config+".left"); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("move the daemon's configuration aside: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is %s.left now\n", config, config)
	switch err := os.Rename(config+".before", config); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("bring back the configuration of before: %w", err)
	default:
		fmt.Fprintf(cmd.OutOrStdout(), "%s is what it was before join\n", config)
	}
	return nil
}

func leaveBy(ctx context.Context, dir trust.Directory, offline, force bool) (trust.Identity, error) {
	m, err := dir.Load()
	if err != nil {
		return trust.Identity{}, err
	}
	who := m.Who()
	if !offline {
		if err := forgetMe(ctx, dir, m, force); err != nil {
			return who, err
		}
	}
	return who, dir.Forget()
}

// forgets is the command by which an administrator does what leave does at the controller.
func forgets(who trust.Identity) string {
	if who.Role == trust.Agent {
		return "scaffold boost agent forget " + who.Name
	}
	return "scaffold " + string(who.Role) + " forget " + who.Name
}

// forgetMe has a controller forget the member. One that did before says so, which is as good.
func forgetMe(ctx context.Context, dir trust.Directory, m *trust.Member, force bool) error {
	last := exit.Failf(exit.Unreachable, "--offline leaves without it", "no address of a controller is known here")
	for _, address := range dir.Addresses() {
		client, err := trustClient(address, m.Config())
		if err != nil {
			return err
		}
		once, cancel := context.WithTimeout(ctx, remote.AnswerTime)
		_, err = client.Forget(once, connect.NewRequest(&apiv1.ForgetRequest{Role: string(m.Who().Role), Name: m.Who().Name, Force: force}))
		cancel()
		if err == nil || connect.CodeOf(err) == connect.CodeUnauthenticated || connect.CodeOf(err) == connect.CodeCanceled {
			return nil
		}
		if connect.CodeOf(err) == connect.CodeFailedPrecondition {
			return exit.Failf(exit.Refused, "on this machine `scaffold leave --force` does it", "%s", said(err))
		}
		last = exit.Failf(exit.Unreachable, "--offline leaves without it, and `"+forgets(m.Who())+"` does the rest there", "no controller at %s: %s", address, said(err))
	}
	return last
}
