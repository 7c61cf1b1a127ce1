package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"scaffold.dev/scaffold/internal/setup"
)

// wellWait is how long a daemon has until it has found its network.
const wellWait = 10 * time.Second

const aboutInstall = `Install makes a daemon part of this machine: its systemd unit, its user and directories, its
configuration file, and on a host the way from the resolver to the names of the network. The flags of
the daemon are given here and stand in the configuration file from then on; without any, a file that is
there already is used, as %q.

Nothing is overwritten that an installation did not write, and one that fails leaves nothing. To install
again changes only what differs; flows go on while a daemon is restarted. --dry-run shows each file and
each step.`

func installCommand() *cobra.Command {
	return group("install", "Make a daemon part of this machine: unit, user, configuration, resolver",
		installRole(setup.Controller, controldCommand(nil), `  sudo scaffold install controller --network lab
  sudo scaffold install controller --network lab --trust keys --dry-run`),
		installRole(setup.Router, routerdCommand(), `  sudo scaffold install router --name r1 --controller http://192.0.2.1:23728 --port eth1 --mgmt eth0 --service
  sudo scaffold install router --root /mnt/image --name r1 --controller http://192.0.2.1:23728`),
		installRole(setup.Host, hostdCommand(), `  sudo scaffold install host --name s1 --uplink eth0
  sudo scaffold install host --name s1 --uplink eth0 --resolver none
  sudo scaffold install host --dry-run        # with the /etc/scaffold/hostd.yaml that is there`),
		installRole(setup.Gateway, new(gatewayFlags).command(), `  sudo scaffold install gateway --listen 0.0.0.0:80=web --listen [::]:80=web
  sudo scaffold install gateway --listen '*:443=shop:8443,proxy=v2' --dry-run`),
	)
}

// installation are the flags of `install`.
type installation struct {
	options setup.Options
	root    string
	dryRun  bool
	noStart bool
	daemon  *cobra.Command
}

func installRole(role setup.Role, daemon *cobra.Command, example string) *cobra.Command {
	in := &installation{daemon: daemon, options: setup.Options{Role: role}}
	cmd := &cobra.Command{
		Use:     string(role) + " [FLAGS OF " + role.Daemon() + "]",
		Short:   fmt.Sprintf("Make %s part of this machine", role.Daemon()),
		Long:    fmt.Sprintf(aboutInstall, role.Config()),
		Example: example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return in.run(cmd) },
	}
	set := cmd.Flags()
	set.BoolVar(&in.dryRun, "dry-run", false, "show what would be done, and do nothing")
	set.StringVar(&in.root, "root", "", "install into the image below this directory; nothing of it is run")
	set.BoolVar(&in.noStart, "no-start", false, "do not start it now, only at the next boot")
	if role == setup.Host {
		set.StringVar(&in.options.Resolver, "resolver", "auto", "who is told of the network's names: "+strings.Join(setup.Resolvers, ", "))
		set.StringVar(&in.options.Domain, "domain", "svc", "domain of the network's names")
	}
	daemon.Flags().VisitAll(func(f *pflag.Flag) {
		if !notInFile(f.Name) && set.Lookup(f.Name) == nil {
			copied := *f
			copied.Annotations = nil // what a daemon requires may be in the file
			set.AddFlag(&copied)
		}
	})
	return cmd
}

func (in *installation) run(cmd *cobra.Command) error {
	m, err := in.machine()
	if err != nil {
		return err
	}
	if in.options.Binary, err = os.Executable(); err != nil {
		return err
	}
	if err := in.configure(cmd, m); err != nil {
		return err
	}
	in.options.Start = !in.noStart
	plan, err := m.Plan(in.options)
	if err != nil {
		return setupError(err)
	}
	out := cmd.OutOrStdout()
	if in.dryRun {
		showPlan(out, plan)
		return nil
	}
	changed := plan.Changes()
	if err := m.Install(plan); err != nil {
		return setupError(fmt.Errorf("%w; what was done is undone", err))
	}
	showNotes(out, plan)
	return in.begin(out, m, changed)
}

func (in *installation) machine() (*setup.Machine, error) {
	if in.root != "" {
		if info, err := os.Stat(in.root); err != nil || !info.IsDir() {
			return nil, failf(ExitNotFound, "", "--root %s: there is no such directory", in.root)
		}
		m, err := setup.Image(in.root)
		return m, fail(ExitUsage, "leave --root out", err)
	}
	if os.Geteuid() != 0 && !in.dryRun {
		return nil, failf(ExitMissing, "try again with sudo, or look at it with --dry-run", "this changes the machine and needs root")
	}
	return setup.This(), nil
}

// configure makes the configuration file from the flags that were typed, and has the daemon check what
// it is going to read.
func (in *installation) configure(cmd *cobra.Command, m *setup.Machine) error {
	text, err := in.typed(cmd)
	if err != nil {
		return err
	}
	in.options.Config = text
	path := in.options.Role.Config()
	if text == nil {
		if text, err = m.Read(path); errors.Is(err, os.ErrNotExist) {
			return nil // said by the plan
		} else if err != nil {
			return err
		}
	}
	file, err := parseConfig(path, text)
	if err == nil {
		err = file.apply(in.fresh().Flags())
	}
	if err == nil {
		err = in.check(text)
	}
	return fail(ExitUsage, fmt.Sprintf("`scaffold %s --help` lists the flags", in.options.Role.Daemon()), err)
}

// fresh is the daemon's command with all flags as they are by themselves.
func (in *installation) fresh() *cobra.Command {
	switch in.options.Role {
	case setup.Controller:
		return controldCommand(nil)
	case setup.Router:
		return routerdCommand()
	case setup.Gateway:
		return new(gatewayFlags).command()
	}
	return hostdCommand()
}

// check has the daemon read its flags from the file, without doing anything else.
func (in *installation) check(text []byte) error {
	f, err := os.CreateTemp("", "scaffold-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		return err
	}
	daemon := in.fresh()
	daemon.SilenceErrors, daemon.SilenceUsage = true, true
	daemon.SetArgs([]string{"--config", f.Name(), "--check"})
	if err := daemon.Execute(); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), f.Name(), in.options.Role.Config()))
	}
	return nil
}

// typed is the configuration file of the daemon's flags that were typed; nil for none.
func (in *installation) typed(cmd *cobra.Command) ([]byte, error) {
	top := &yaml.Node{Kind: yaml.MappingNode}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if in.daemon.Flags().Lookup(f.Name) == nil || cmd.LocalNonPersistentFlags().Lookup(f.Name) == nil {
			return
		}
		var value yaml.Node
		if many, ok := f.Value.(pflag.SliceValue); ok {
			value.Encode(many.GetSlice())
			value.Style = yaml.FlowStyle
		} else if value.Encode(f.Value.String()); f.Value.Type() == "bool" {
			value = yaml.Node{Kind: yaml.ScalarNode, Value: f.Value.String()}
		}
		top.Content = append(top.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.Name}, &value)
	})
	if len(top.Content) == 0 {
		return nil, nil
	}
	body, err := yaml.Marshal(top)
	if err != nil {
		return nil, err
	}
	role := in.options.Role
	head := fmt.Sprintf("# Written by `scaffold install %s`. Keys are the flags of `scaffold %s --help`.\n# After an edit: systemctl restart %s\n", role, role.Daemon(), role.Unit())
	return append([]byte(head), body...), nil
}

func (in *installation) begin(out io.Writer, m *setup.Machine, changed bool) error {
	role := in.options.Role
	switch {
	case !m.Live:
		fmt.Fprintf(out, "%s is installed\n", role)
	case in.noStart:
		fmt.Fprintf(out, "%s is installed and starts at the next boot, or by: systemctl start %s\n", role, role.Unit())
	default:
		if err := m.Begin(role, changed); err != nil {
			return fail(ExitFailed, "journalctl -u "+role.Unit()+" says why; the installation stays", err)
		}
		fmt.Fprintf(out, "%s is installed and runs\n", role)
		if trouble := setup.Well(role, wellWait); trouble != "" {
			fmt.Fprintf(out, "note: it is not well yet: %s\n", trouble)
		}
	}
	return nil
}

func showPlan(out io.Writer, plan *setup.Plan) {
	for _, s := range plan.Steps {
		fmt.Fprintln(out, s)
		for line := range strings.Lines(s.Text()) {
			fmt.Fprint(out, "        | ", strings.TrimSuffix(line, "\n"), "\n")
		}
	}
	showNotes(out, plan)
}

func showNotes(out io.Writer, plan *setup.Plan) {
	for _, n := range plan.Notes {
		fmt.Fprintln(out, "note:", n)
	}
}

// setupError gives refusals their exit code.
func setupError(err error) error {
	var refused *setup.RefusedError
	var manifest *setup.ManifestError
	switch {
	case errors.As(err, &refused):
		return fail(ExitRefused, refused.Hint, err)
	case errors.As(err, &manifest):
		return fail(ExitRefused, "it was edited, or is of another version of scaffold: uninstall with that one", err)
	case errors.Is(err, setup.ErrNothing):
		return fail(ExitNotFound, "", err)
	}
	return err
}
