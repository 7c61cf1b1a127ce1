package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// loginCommand makes its user an administrator of a network.
func loginCommand() *cobra.Command {
	t := &tokenUse{}
	cmd := &cobra.Command{
		Use:   "login --token TOKEN [ADDRESS...]",
		Short: "Become an administrator of a network with keys, from any machine",
		Long: `Login redeems a token for an administrator. The key and the certificate are kept in the user's
configuration directory; commands use them for the addresses that were given, and ask there where no
daemon of this machine answers.`,
		Example: "  scaffold login --token scaffold1-... [2001:db8::1]:23728\n  scaffold status --api https://[2001:db8::1]:23728",
		RunE:    func(cmd *cobra.Command, args []string) error { return t.login(cmd, args) },
	}
	t.add(cmd, "name of this administrator (default: the user's)")
	return cmd
}

func (t *tokenUse) login(cmd *cobra.Command, args []string) error {
	if err := t.parse(args); err != nil {
		return err
	}
	if t.token.Role != trust.Admin {
		return failf(ExitUsage, "`scaffold join` on the machine itself takes it", "the token is for a %s, not for an administrator", t.token.Role)
	}
	if t.name == "" {
		t.name = cleanName(userName())
	}
	met, err := t.meet(cmd.Context())
	if err != nil {
		return err
	}
	logins, err := loginsDir()
	if err != nil {
		return err
	}
	dir := trust.Directory(filepath.Join(logins, met.Network))
	if err := t.redeem(cmd.Context(), dir); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is an administrator of the network %s now: scaffold status --api https://%s\n", t.name, met.Network, t.addresses[0])
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

func loginsDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where to keep credentials: %w", err)
	}
	return filepath.Join(dir, "scaffold", "logins"), nil
}

// logins are the directories of all networks that somebody logged in to.
func logins() (list []trust.Directory) {
	dir, err := loginsDir()
	if err != nil {
		return nil
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is ours
	for _, d := range found {
		if dir := trust.Directory(d); dir.Member() { // else a login that was refused left its key
			list = append(list, dir)
		}
	}
	return list
}

// as is whom an endpoint knows us as; nil: it is spoken to in the clear.
func as(endpoint string) (*tls.Config, error) {
	e, err := api.ParseEndpoint(endpoint)
	if err != nil || e.Network != "tcp" || strings.HasPrefix(endpoint, "http://") {
		return nil, nil // a bad one is Dial's to say
	}
	for _, dir := range logins() {
		if !slices.Contains(dir.Addresses(), e.Address) {
			continue
		}
		m, err := dir.Load()
		if err != nil {
			return nil, fail(ExitRefused, "`scaffold login` makes a new credential", err)
		}
		renew(dir, m, e)
		return m.Config(), nil
	}
	if e.Secure {
		return nil, failf(ExitRefused, "`scaffold token create --role admin` where the controller runs, then `scaffold login --token T "+e.Address+"` here", "no credential of this user is for %s", e.Address)
	}
	return nil, nil
}

// renewAfter is how old an administrator's certificate becomes before the next command asks for another one: who gives
// commands at all need not log in again, and hears of the network's next key.
const renewAfter = 24 * time.Hour

// renewTime bounds what a command waits for that.
const renewTime = 2 * time.Second

// renew gets a login a fresh credential if it is time. Where that fails the old one goes on, and the command itself says
// what is wrong.
func renew(dir trust.Directory, m *trust.Member, e api.Endpoint) {
	if time.Since(m.Since()) < renewAfter {
		return
	}
	client := api.DialWith(e.As(m.Config()), new(net.Dialer).DialContext)
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	answer, err := apiv1connect.NewTrustClient(client, api.BaseURL()).Renew(ctx, connect.NewRequest(&apiv1.RenewRequest{}))
	if err != nil {
		return
	}
	key, err := dir.Key()
	fresh := trust.Credential{Certificate: answer.Msg.Certificate, Roots: answer.Msg.Roots}
	if err == nil && m.Replace(key, fresh) == nil {
		_ = dir.Save(fresh) // it is tried again with the next command
	}
}

func logoutCommand() *cobra.Command {
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
			who, err := leaveBy(cmd.Context(), dir, offline)
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
	all := logins()
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
		return "", failf(ExitNotFound, "", "this user is logged in to no network")
	case len(args) > 0:
		return "", failf(ExitNotFound, "", "this user is not logged in to the network %q, but to %s", args[0], strings.Join(names, ", "))
	case len(all) > 1:
		return "", failf(ExitUsage, "name one of them", "this user is logged in to several networks: %s", strings.Join(names, ", "))
	}
	return all[0], nil
}

// onlyLogin is where the one network is that somebody logged in to: the endpoints of its controllers, as --api takes them.
func onlyLogin() string {
	all := logins()
	if len(all) != 1 || len(all[0].Addresses()) == 0 {
		return ""
	}
	return "https://" + strings.Join(all[0].Addresses(), ",https://")
}

var errNoAddress = errors.New("where is the controller? the token names no address")
