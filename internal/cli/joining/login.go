package joining

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	corenames "scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/trust"
)

// LoginCommand makes its user an administrator of a network.
func LoginCommand() *cobra.Command {
	t := &tokenUse{}
	cmd := &cobra.Command{
		Use:   "login --token TOKEN [ADDRESS...]",
		Short: "Become an administrator of a network with keys, from any machine",
		Long: `Login redeems a token for an administrator. The key and the certificate are kept in the user's
configuration directory. From then on this user's commands ask there, on a host too; on a controller's own machine
they ask that one, if this user may. "scaffold config" says where.`,
		Example: "  scaffold login --token scaffold1-... [2001:db8::1]:23728\n  scaffold status --api https://[2001:db8::1]:23728",
		RunE:    func(cmd *cobra.Command, args []string) error { return t.login(cmd, args) },
	}
	t.add(cmd, "name of this administrator (default: the user's)")
	return cmd
}

func (t *tokenUse) login(cmd *cobra.Command, args []string) error {
	if err := t.parse(cmd, args); err != nil {
		return err
	}
	if t.token.Role != trust.Admin {
		return exit.Failf(exit.Usage, "`scaffold join` on the machine itself takes it", "the token is for %s, not for an administrator", t.token.Role.WithArticle())
	}
	if t.name == "" {
		t.name = cleanName(userName())
	}
	if err := corenames.CheckMember(t.name); err != nil {
		return exit.Fail(exit.Usage, "say another one with --name", err)
	}
	met, err := t.meet(cmd.Context())
	if err != nil {
		return err
	}
	logins, err := remote.LoginsDir()
	if err != nil {
		return err
	}
	dir := trust.Directory(filepath.Join(logins, met.Network))
	if err := t.redeem(cmd.Context(), dir); err != nil {
		return err
	}
	if err := dir.KeyForOthers(); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is an administrator of the network %s now\n", t.name, met.Network)
	if here, err := remote.Add(pflag.NewFlagSet("", pflag.ContinueOnError)).Choose(); err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "commands ask %s: %s\n", here.Endpoint, here.Why)
	}
	return nil
}

// userName is the user's: the environment may not say it, in a container for instance.
func userName() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "" // the controller refuses it
}

// LogoutCommand is `scaffold logout`.
func LogoutCommand() *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "logout [NETWORK]",
		Short: "Give up being an administrator: the credential of this user is revoked and removed",
		Long: `Logout is the opposite of login. With one login the network need not be named. Another administrator
does the same from elsewhere by "scaffold admin forget NAME".`,
		Example: "  scaffold logout\n  scaffold logout prod\n  scaffold logout --offline    # the controller is not reached; scaffold admin forget NAME does the rest",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := loginOf(args)
			if err != nil {
				return err
			}
			who, err := leaveBy(cmd.Context(), dir, offline, false)
			if err == nil {
				err = os.Remove(string(dir))
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%v is logged out of the network %s\n", who, filepath.Base(string(dir)))
			return nil
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "remove what is here without telling the controller")
	return cmd
}

// loginOf is the directory of the login that is meant.
func loginOf(args []string) (trust.Directory, error) {
	all := remote.Logins()
	var names []string
	for _, dir := range all {
		name := filepath.Base(string(dir))
		if len(args) > 0 && args[0] == name {
			return dir, nil
		}
		names = append(names, name)
	}
	switch {
	case len(all) == 0:
		return "", exit.Failf(exit.NotFound, "`scaffold login --token TOKEN` logs in; `scaffold token create --role admin` where the controller runs makes a TOKEN", "this user is logged in to no network")
	case len(args) > 0:
		return "", exit.Failf(exit.NotFound, "", "this user is not logged in to the network %q, but to %s", args[0], strings.Join(names, ", "))
	case len(all) > 1:
		return "", exit.Failf(exit.Usage, "name one of them", "this user is logged in to several networks: %s", strings.Join(names, ", "))
	}
	return all[0], nil
}
