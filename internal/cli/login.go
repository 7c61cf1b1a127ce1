package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
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
		t.name = cleanName(os.Getenv("USER"))
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
		list = append(list, trust.Directory(d))
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
		return m.Config(), nil
	}
	if e.Secure {
		return nil, failf(ExitRefused, "`scaffold token create --role admin` where the controller runs, then `scaffold login --token T "+e.Address+"` here", "no credential of this user is for %s", e.Address)
	}
	return nil, nil
}

// onlyLogin is the endpoint of the one network that somebody logged in to.
func onlyLogin() string {
	all := logins()
	if len(all) != 1 || len(all[0].Addresses()) == 0 {
		return ""
	}
	return "https://" + all[0].Addresses()[0]
}

var errNoAddress = errors.New("where is the controller? the token names no address")
