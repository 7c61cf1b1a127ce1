package remote

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/exit"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"

	"scaffold.dev/scaffold/internal/trust"
)

// LoginsDir is where this user's credentials are.
func LoginsDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where to keep credentials: %w", err)
	}
	return filepath.Join(dir, "scaffold", "logins"), nil
}

// Logins are the directories of all networks that somebody logged in to.
func Logins() (list []trust.Directory) {
	dir, err := LoginsDir()
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

// Identity is whom an endpoint knows us as; nil: it is spoken to in the clear.
func Identity(endpoint string) (*tls.Config, error) {
	e, err := api.ParseEndpoint(endpoint)
	if err != nil || e.Network != "tcp" || strings.HasPrefix(endpoint, "http://") {
		return nil, nil // a bad one is Dial's to say
	}
	for _, dir := range Logins() {
		if !slices.Contains(dir.Addresses(), e.Address) {
			continue
		}
		m, err := dir.Load()
		if err != nil {
			return nil, exit.Fail(exit.Refused, "`scaffold login` makes a new credential", err)
		}
		renew(dir, m, e)
		return m.Config(), nil
	}
	if e.Secure {
		return nil, exit.Failf(exit.Refused, "`scaffold token create --role admin` where the controller runs, then `scaffold login --token T "+e.Address+"` here", "no credential of this user is for %s", e.Address)
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

// onlyLogin is where the one network is that somebody logged in to: the endpoints of its controllers, as --api takes them.
func onlyLogin() string {
	all := Logins()
	if len(all) != 1 || len(all[0].Addresses()) == 0 {
		return ""
	}
	return "https://" + strings.Join(all[0].Addresses(), ",https://")
}
