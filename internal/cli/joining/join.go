package joining

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/install"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"

	corenames "scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/host/hostd"
	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/linux/durable"
	"scaffold.dev/scaffold/internal/operate/setup"
	"scaffold.dev/scaffold/internal/router/routerd"
	"scaffold.dev/scaffold/internal/trust"
)

// A joining is what `scaffold join` was told.
type joining struct {
	tokenUse
	uplinks, ports          []string
	doors                   []string
	at                      []netip.AddrPort // the same, of an agent
	tunnels                 []string
	service, check, install bool
	restart                 bool     // an agent that runs, also where that resets what it carries
	redeemed                bool     // the token was: credentials are new
	rewritten               bool     // the daemon's file says something else than before
	replaced                bool     // there was one
	changes                 []string // of single lines of it; none: all of it is another one
	state, config           string
}

// JoinCommand is `scaffold join`.
func JoinCommand() *cobra.Command {
	j := &joining{}
	cmd := &cobra.Command{
		Use:   "join --token TOKEN [ADDRESS...]",
		Short: "Make this machine a host or router of a network with keys",
		Long: `Join shows a token to a controller, after that has shown to be of the token's network, and keeps what
it gets for it: a certificate of this machine's key. It writes the daemon's configuration, which the
service starts with; where there is no service it says the command. --install makes the service first, with
all that belongs to it, as scaffold install does.

What the machine becomes, a host, a router or an agent of boost, the token says. A host looks for a router on every interface
of Ethernet, if no --uplink names one, and makes a tunnel while none answers: UDP to a router that has
--tunnel is enough. Join can be run again: a host or router is restarted, under which flows go on; an agent is
not, unless --restart says so, for a restart resets the connections that it carries.`,
		Example: `  scaffold join --token scaffold1-... --install
  scaffold join --token scaffold1-... --uplink eth0 [2001:db8::1]:23728
  scaffold join --token scaffold1-... --service --port eth1 --port eth2 192.0.2.1:23728
  scaffold join --token scaffold1-... --service --tunnel 192.0.2.2 --install 192.0.2.1:23728
  scaffold join --token scaffold1-... --door 203.0.113.1 --port eth0 --port eth1 --install
  scaffold join --token scaffold1-... --check 192.0.2.1:23728`,
		RunE: func(cmd *cobra.Command, args []string) error { return j.run(cmd, args) },
	}
	j.add(cmd, "name of this machine in the network (default: its host name)")
	set := cmd.Flags()
	set.StringSliceVar(&j.uplinks, "uplink", nil, "of a host: interface that leads to a router, or tunnel; repeat for more (default auto: whichever leads to one, else a tunnel)")
	set.StringSliceVar(&j.ports, "port", nil, "of a router: interface to forward on (default: all); of an agent: interface by which connections come and go; repeat for more")
	set.StringArrayVar(&j.doors, "door", nil, "of an agent: address, with or without a port, where other agents reach it; repeat for more paths")
	set.StringArrayVar(&j.tunnels, "tunnel", nil, "of a router: offer tunnels to hosts at this address, [vxlan:|wireguard:]ADDRESS[:PORT]; repeat for more")
	set.BoolVar(&j.service, "service", false, "of a router: resolve services")
	set.BoolVar(&j.install, "install", false, "make the daemon part of this machine as well: unit, user, resolver")
	set.BoolVar(&j.check, "check", false, "look at everything, and neither use the token nor write anything")
	set.BoolVar(&j.restart, "restart", false, "of an agent that runs: restart it, so that another file counts; connections that it carries are reset")
	set.StringVar(&j.state, "state", "", "directory of key and certificates (default /var/lib/scaffold/hostd, routerd or boostd)")
	command.Exclusive(cmd, "check install")
	set.StringVar(&j.config, "config", "", "file to write (default /etc/scaffold/hostd.yaml, routerd.yaml or boostd.yaml)")
	return cmd
}

func (j *joining) run(cmd *cobra.Command, args []string) error {
	if err := j.parse(cmd, args); err != nil {
		return err
	}
	if j.token.Role == trust.Admin {
		return exit.Failf(exit.Usage, "`scaffold login` takes it", "the token is for an administrator, not for a machine")
	}
	if err := j.fill(); err != nil {
		return err
	}
	met, err := j.meet(cmd.Context())
	if err != nil {
		return err
	}
	have, err := j.before(met)
	if err != nil {
		return err
	}
	if err := j.leavesAgent(cmd.Context()); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if j.check {
		fmt.Fprintf(out, "the controller at %s is of the token's network, %s; the clocks agree\nthis machine would join as %s %s (%s, %s)\n", j.addresses[0], met.Network, j.token.Role, j.name, j.state, j.config)
		return nil
	}
	if have {
		fmt.Fprintf(out, "%s %s is a member of the network %s already\n", j.token.Role, j.name, met.Network)
	} else if err := j.redeem(cmd.Context(), trust.Directory(j.state)); err != nil {
		return err
	} else {
		j.redeemed = true
		fmt.Fprintf(out, "%s %s is a member of the network %s now: key and certificate are in %s\n", j.token.Role, j.name, met.Network, j.state)
	}
	if err := j.configure(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s says how the daemon starts\n", j.config)
	if j.replaced {
		fmt.Fprintf(out, "it said something else before, which is in %s.before%s\n", j.config, asLines(j.changes))
	}
	if j.install {
		return j.makeService(cmd)
	}
	return j.begin(cmd.Context(), func(line string) { fmt.Fprintln(out, line) })
}

// asLines are changes for people, one a line behind what is said of them.
func asLines(changes []string) string {
	if len(changes) == 0 {
		return ""
	}
	return ":\n  " + strings.Join(changes, "\n  ")
}

func (j *joining) role() setup.Role {
	switch j.token.Role {
	case trust.Router:
		return setup.Router
	case trust.Agent:
		return setup.Agent
	}
	return setup.Host
}

// makeService installs the daemon, which takes the configuration that is there by now.
func (j *joining) makeService(cmd *cobra.Command) error {
	installing := install.Command()
	installing.SilenceErrors, installing.SilenceUsage = true, true
	installing.SetOut(cmd.OutOrStdout())
	installing.SetErr(cmd.ErrOrStderr())
	installing.SetArgs([]string{string(j.role())})
	ran := systemctl(cmd.Context(), "is-active", "--quiet", j.role().Unit()) == nil
	if ran && (j.rewritten || j.role() == setup.Agent) { // with the file of before, which the installation would wait for to be well
		if err := j.begin(cmd.Context(), func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) }); err != nil {
			return err
		}
	}
	return installing.ExecuteContext(cmd.Context())
}

// fill puts in what was not said, and looks at what was.
func (j *joining) fill() error {
	orElse := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	host, _ := os.Hostname() // empty: the controller refuses it
	orElse(&j.name, cleanName(host))
	if err := corenames.CheckMember(j.name); err != nil {
		return exit.Fail(exit.Usage, "say another one with --name", err)
	}
	if j.token.Role == trust.Agent {
		return j.fillAgent()
	}
	if j.restart {
		return exit.Failf(exit.Usage, "leave it out", "--restart is of agents of boost: a host or router is restarted anyway, and its flows go on")
	}
	if len(j.doors) > 0 {
		return exit.Failf(exit.Usage, "an agent's token: `scaffold token create --role agent`", "--door is of agents of boost, and the token is for %s", j.token.Role.WithArticle())
	}
	read := j.role().Config()
	if orElse(&j.config, read); j.install && j.config != read {
		return exit.Failf(exit.Usage, "leave one of the two out", "--install and --config: the service reads %s", read)
	}
	if info, err := os.Stat(j.config); err == nil && !info.Mode().IsRegular() {
		return exit.Failf(exit.Usage, "name the file that the daemon is to read", "--config %s is no file", j.config)
	}
	if j.token.Role == trust.Router {
		orElse(&j.state, routerd.DefaultCredentials)
		if len(j.uplinks) > 0 {
			return exit.Failf(exit.Usage, "--port names interfaces to forward on", "--uplink is of hosts, and the token is for a router")
		}
		if err := offersGood(j.tunnels); err != nil {
			return err
		}
		uplinks, _ := setup.This().Read(setup.Host.Config())
		if err := install.BesideFits(setup.This(), setup.Router, install.HostUplinks(uplinks)); err != nil {
			return err
		}
		return interfacesThere(j.ports)
	}
	if len(j.tunnels) > 0 || len(j.ports) > 0 || j.service {
		return exit.Failf(exit.Usage, "--uplink tunnel has a host make one; a router's token: `scaffold token create --role router`", "--tunnel, --port and --service are of routers, and the token is for a host")
	}
	orElse(&j.state, hostd.DefaultStateDir)
	if len(j.uplinks) == 0 {
		j.uplinks = []string{hostd.AutoUplink}
	}
	if err := install.BesideFits(setup.This(), setup.Host, j.uplinks); err != nil {
		return err
	}
	return uplinksThere(j.uplinks)
}

// uplinksThere looks for those that are interfaces.
func uplinksThere(uplinks []string) error {
	var named []string
	for _, u := range uplinks {
		_, tunnel, err := underlay.ParseUplink(u)
		if err != nil {
			return exit.Fail(exit.Usage, "", err)
		}
		if !tunnel && u != hostd.AutoUplink {
			named = append(named, u)
		}
	}
	return interfacesThere(named)
}

// offersGood looks at the addresses where a router is to take tunnels.
func offersGood(texts []string) error {
	var all []underlay.Offer
	for _, text := range texts {
		offers, err := underlay.ParseOffers(text)
		if err != nil {
			return exit.Fail(exit.Usage, "", err)
		}
		all = append(all, offers...)
	}
	return exit.Fail(exit.Usage, "", underlay.CheckOffers(all))
}

func interfacesThere(devices []string) error {
	for _, name := range devices {
		if _, err := net.InterfaceByName(name); err != nil {
			return exit.Failf(exit.NotFound, "`ip link` lists them", "interface %s is not there", name)
		}
	}
	return nil
}

// before reports whether the machine is the member already. One whose certificate is by a key that the network has
// retired is that no more, and may become it again.
func (j *joining) before(met *apiv1.MeetResponse) (bool, error) {
	m, err := trust.Directory(j.state).Load()
	if info, err := os.Stat(j.state); err == nil && !info.IsDir() {
		return false, exit.Failf(exit.Usage, "it keeps key and certificates", "--state %s is no directory", j.state)
	}
	if errors.Is(err, trust.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	who := m.Who()
	if !m.Roots().Has(j.token.Pin) && m.Roots().Any(met.Retired) && who.Name == j.name && who.Role == j.token.Role {
		return false, nil
	}
	if !m.Roots().Has(j.token.Pin) || who.Name != j.name || who.Role != j.token.Role {
		return false, exit.Failf(exit.Refused, "`scaffold leave` takes it out of that, or --state names another directory", "this machine is %v of the network %s already", who, m.Network())
	}
	return true, nil
}

// text is what the daemon's file is to say.
func (j *joining) text() string {
	var text strings.Builder
	line := func(key string, value any) {
		b, _ := json.Marshal(value) // strings, lists of them and truths; JSON is YAML
		fmt.Fprintf(&text, "%s: %s\n", key, b)
	}
	line("name", j.name)
	controllers := j.endpoints()
	switch j.token.Role {
	case trust.Agent:
		line("door", j.doors[0])
		if len(j.doors) > 1 {
			line("paths", j.doors[1:])
		}
		line("ports", j.ports)
		line("controllers", controllers)
		line("credentials", j.state)
	case trust.Host:
		line("uplink", j.uplinks)
		line("state", j.state)
		if !strings.HasPrefix(j.addresses[0], "[fe80:") { // a router's: it is found without
			line("controller", controllers)
		}
	default:
		line("controller", controllers)
		line("credentials", j.state)
		line("service", j.service)
		if len(j.ports) > 0 {
			line("port", j.ports)
		}
		if len(j.tunnels) > 0 {
			line("tunnel", j.tunnels)
		}
	}
	return text.String()
}

// endpoints are the controllers that the machine joins by, the one first that has answered.
func (j *joining) endpoints() (all []string) {
	for _, a := range j.addresses {
		all = append(all, "https://"+a)
	}
	return all
}

// configure writes the daemon's file. One that says something else is kept beside it.
func (j *joining) configure() error {
	have, err := os.ReadFile(j.config)
	text := j.text()
	if err == nil {
		var refused error
		if text, j.changes, refused = j.next(have); refused != nil || text == string(have) {
			return refused
		}
		j.replaced = true
		if err := os.Rename(j.config, j.config+".before"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(j.config), 0o755); err != nil {
		return err
	}
	j.rewritten = true
	return durable.Write(j.config, []byte(text), 0o644)
}

// systemctl runs it; what it said is the error where it failed. Tests have one of their own.
var systemctl = func(ctx context.Context, args ...string) error {
	text, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %s", strings.Join(args, " "), cmp.Or(strings.TrimSpace(string(text)), err.Error()))
	}
	return nil
}

// bySystemd reports whether systemd runs this machine.
var bySystemd = func() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// begin starts the service, where systemd runs this machine and has it; else it says the command.
func (j *joining) begin(ctx context.Context, say func(string)) error {
	unit := j.role().Unit()
	elsewhere := j.role() == setup.Agent && j.config != setup.Agent.Config() // the service reads another file
	if elsewhere || !bySystemd() || systemctl(ctx, "cat", unit) != nil {
		say("start it: scaffold " + j.role().Daemon() + " --config " + j.config)
		return nil
	}
	run := func(args ...string) error {
		return exit.Fail(exit.Failed, "`systemctl status "+unit+"` tells more", systemctl(ctx, append(args, unit)...))
	}
	if err := run("enable"); err != nil {
		return err
	}
	if j.role() == setup.Agent && systemctl(ctx, "is-active", "--quiet", unit) == nil {
		return j.beginAgain(say, run)
	}
	if err := run("restart"); err != nil {
		return err
	}
	say(unit + " runs")
	return nil
}
