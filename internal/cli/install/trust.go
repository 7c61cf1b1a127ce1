package install

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/settings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/operate/setup"
	"scaffold.dev/scaffold/internal/trust"
)

func valueOf(typed []settings.Setting, key string) string {
	for _, s := range typed {
		if s.Key == key {
			return s.Value.Value
		}
	}
	return ""
}

// unsaid is what a new configuration file says though nobody typed it: that a new network has keys, so that no
// version of controld takes it for an open one. Beside a store that is there nothing is said: the store says it.
func (in *installation) unsaid(m *setup.Machine, typed []settings.Setting) []settings.Setting {
	data := valueOf(typed, "data")
	if data == "" {
		data = config.DefaultData
	}
	elsewhere := slices.ContainsFunc(typed, func(s settings.Setting) bool { return slices.Contains([]string{"trust", "etcd", "join"}, s.Key) })
	if in.options.Role != setup.Controller || elsewhere || m.Exists(data+"/etcd") {
		return nil
	}
	return []settings.Setting{{Key: "trust", Value: yaml.Node{Kind: yaml.ScalarNode, Value: config.TrustKeys}}}
}

// allowed refuses to open a network that has keys, before anything is changed. The controller would refuse it, too, and
// its members would be without one.
func (in *installation) allowed(m *setup.Machine, text []byte, typed []settings.Setting) error {
	if in.options.Role != setup.Controller || valueOf(typed, "trust") != config.TrustOpen {
		return nil
	}
	const hint = "leave --trust open out; an open network is another one: `scaffold uninstall --purge controller` removes this one for good"
	file, err := settings.Parse(setup.Controller.Config(), text)
	if err != nil {
		return nil //nolint:nilerr // said with all else that is wrong with it
	}
	if e := file.Find("trust"); e != nil && e.Text() == config.TrustKeys {
		return exit.Failf(exit.Refused, hint, "the network has keys (%s): it is never opened again", setup.Controller.Config())
	}
	if e := file.Find("trust"); e != nil && e.Text() == config.TrustOpen || m.Root != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), remote.AnswerTime)
	defer cancel()
	if status, err := remote.Ask(ctx, localAdmin().GetStatus, &apiv1.GetStatusRequest{}, "", ""); err == nil {
		if status.Trust == config.TrustKeys {
			return exit.Failf(exit.Refused, hint, "the network %s that runs here has keys: it is never opened again", status.Network)
		}
		return nil
	}
	if data := config.DefaultData; m.Exists(data + "/etcd") {
		return exit.Failf(exit.Refused, "start it without --trust first: systemctl start "+setup.Controller.Unit()+" (`scaffold status` says what it is)",
			"a network is stored in %s, and its controller does not answer: it may have keys", data)
	}
	return nil
}

func localAdmin() apiv1connect.AdminClient {
	client := api.DialWith(api.Endpoint{Network: "unix", Address: setup.Controller.Socket()}, new(net.Dialer).DialContext)
	return apiv1connect.NewAdminClient(client, api.BaseURL())
}

func localTrust() apiv1connect.TrustClient {
	client := api.DialWith(api.Endpoint{Network: "unix", Address: setup.Controller.Socket()}, new(net.Dialer).DialContext)
	return apiv1connect.NewTrustClient(client, api.BaseURL())
}

// How many hosts may join by the token that `install controller` prints, for as long as tokens are good unless somebody
// says otherwise: an hour.
const firstHosts = 10

// next says what comes after a controller is there: how machines join. A network that has members is left alone.
func (in *installation) next(ctx context.Context, out io.Writer, m *setup.Machine) error {
	if in.options.Role != setup.Controller || !m.Live || in.noStart {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerTime)
	defer cancel()
	status, err := remote.Ask(ctx, localAdmin().GetStatus, &apiv1.GetStatusRequest{}, "", "")
	if err != nil {
		return nil //nolint:nilerr // it does not lead yet, which was said
	}
	if status.Trust == config.TrustOpen {
		fmt.Fprint(out, openMeans(status))
		return nil
	}
	members, err := remote.Ask(ctx, localTrust().ListMembers, &apiv1.ListMembersRequest{}, "", "")
	if err != nil || len(members.Members) > 0 {
		return err
	}
	lines, err := joinLines(ctx, localTrust(), status)
	fmt.Fprint(out, lines)
	return err
}

// openMeans is what an open network is, and how it becomes one with keys.
func openMeans(s *apiv1.Status) string {
	return fmt.Sprintf("the network %s is open: whoever reaches its controller may join, steer every service and copy all that is stored\n"+
		"  to give it keys, with its flows going on: sudo scaffold install controller --trust keys\n", s.Network)
}

// joinLines are the commands by which machines join, with tokens in them.
func joinLines(ctx context.Context, network apiv1connect.TrustClient, s *apiv1.Status) (string, error) {
	var b strings.Builder
	token := func(role trust.Role, uses uint32) (string, bool, error) {
		answer, err := remote.Ask(ctx, network.CreateToken, &apiv1.CreateTokenRequest{Role: string(role), Uses: uses}, "", "")
		if err != nil {
			return "", false, err
		}
		t, err := trust.ParseToken(answer.Token)
		return answer.Token, len(t.Addresses) > 0, err
	}
	router, reached, err := token(trust.Router, 1)
	if err != nil {
		return "", err
	}
	host, _, err := token(trust.Host, firstHosts)
	if err != nil {
		return "", err
	}
	where := ""
	if !reached {
		where = " ADDRESS"
	}
	fmt.Fprintf(&b, "the network %s has keys: machines become members by a token, within an hour\n", s.Network)
	fmt.Fprintf(&b, "  on a router:                  sudo scaffold join --token %s --service --install%s\n", router, where)
	fmt.Fprintf(&b, "  on each host, up to %d:       sudo scaffold join --token %s --install%s\n", firstHosts, host, where)
	if !reached {
		fmt.Fprintf(&b, "  ADDRESS is where those machines reach this controller: it listens on this machine alone (listen: in %s)\n", setup.Controller.Config())
	}
	b.WriteString("  more: sudo scaffold token create --role host (router, admin)\n")
	if s.Hosts > 0 {
		b.WriteString("  it was open: each of its machines joins once, under the name that it has (scaffold host ls); flows go on meanwhile\n")
	}
	return b.String(), nil
}
