package install

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

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/daemons"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/gateway"
	"scaffold.dev/scaffold/internal/cli/settings"
	"scaffold.dev/scaffold/internal/operate/setup"
)

// wellWait is how long a daemon has until it has found its network.
const wellWait = 10 * time.Second

const aboutInstall = `Install makes a daemon part of this machine: its systemd unit, its user and directories, its
configuration file, and on a host the way from the resolver to the names of the network. The flags of
the daemon are given here and stand in the configuration file from then on; without any, a file that is
there already is used, as %q.

Nothing is overwritten that an installation did not write, and one that fails leaves nothing. To install
again changes what differs: flags that are given take their place in the configuration file, all else in it
stays as it is, and each change is shown; flows go on while a daemon is restarted. --dry-run shows each file
and each step.`

// Command is `scaffold install`.
func Command() *cobra.Command {
	return command.Group("install", "Make a daemon part of this machine: unit, user, configuration, resolver",
		installRole(setup.Controller, daemons.Controld(nil), `  sudo scaffold install controller --network lab
  sudo scaffold install controller --network lab --dry-run
  sudo scaffold install controller --log-level debug      # again: all else stays
  sudo scaffold install controller --network trial --trust open --listen 192.0.2.1:23728`),
		installRole(setup.Router, daemons.Routerd(), `  sudo scaffold install router --name r1 --controller http://192.0.2.1:23728 --port eth1 --mgmt eth0 --service
  sudo scaffold install router --root /mnt/image --name r1 --controller http://192.0.2.1:23728`),
		installRole(setup.Host, daemons.Hostd(), `  sudo scaffold install host --name s1 --uplink eth0
  sudo scaffold install host --name s1 --uplink eth0 --resolver none
  sudo scaffold install host --dry-run        # with the /etc/scaffold/hostd.yaml that is there`),
		installRole(setup.Gateway, gateway.Daemon(), `  sudo scaffold install gateway --listen 0.0.0.0:80=web --listen [::]:80=web
  sudo scaffold install gateway --listen '*:443=shop:8443,proxy=v2' --dry-run`),
		installAgent(),
	)
}

// installation are the flags of `install`.
type installation struct {
	options setup.Options
	root    string
	dryRun  bool
	noStart bool
	daemon  *cobra.Command
	ownFile bool // the daemon's file is not of its flags
}

const aboutAgent = `Install makes an agent of boost part of this machine: its systemd unit and directories. What it is to do
stands in %q, which "scaffold join" writes with the token of an agent; it is read
before anything is changed.

To install again changes what differs, and has a worker of this program take over: connections go on. Another file
counts after a restart, which resets what the agent carries: drain it first (scaffold boost agent drain).
--dry-run shows each file and each step.`

func installAgent() *cobra.Command {
	role := setup.Agent
	in, cmd := newInstallation(role, daemons.Boostd())
	cmd.Use = string(role)
	cmd.Long = fmt.Sprintf(aboutAgent, role.Config())
	cmd.Example = `  sudo scaffold install agent
  sudo scaffold install agent --dry-run
  sudo scaffold join --token scaffold1-... --door 203.0.113.1 --port eth0 --port eth1 --install`
	in.ownFile = true
	return cmd
}

// newInstallation is a command with what all have.
func newInstallation(role setup.Role, daemon *cobra.Command) (*installation, *cobra.Command) {
	in := &installation{daemon: daemon, options: setup.Options{Role: role}}
	cmd := &cobra.Command{
		Short: fmt.Sprintf("Make %s part of this machine", role.Daemon()),
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return in.run(cmd) },
	}
	set := cmd.Flags()
	set.BoolVar(&in.dryRun, "dry-run", false, "show what would be done, and do nothing")
	set.StringVar(&in.root, "root", "", "install into the image below this directory; nothing of it is run")
	set.BoolVar(&in.noStart, "no-start", false, "do not start it now, only at the next boot")
	return in, cmd
}

func installRole(role setup.Role, daemon *cobra.Command, example string) *cobra.Command {
	in, cmd := newInstallation(role, daemon)
	cmd.Use = string(role) + " [FLAGS OF " + role.Daemon() + "]"
	cmd.Long = fmt.Sprintf(aboutInstall, role.Config())
	cmd.Example = example
	set := cmd.Flags()
	if role == setup.Host {
		set.StringVar(&in.options.Resolver, "resolver", "auto", "who is told of the network's names: "+strings.Join(setup.Resolvers, ", "))
		set.StringVar(&in.options.Domain, "domain", "svc", "domain of the network's names")
	}
	daemon.Flags().VisitAll(func(f *pflag.Flag) {
		if !settings.NotInFile(f.Name) && set.Lookup(f.Name) == nil {
			copied := *f
			copied.Annotations = nil // what a daemon requires may be in the file
			set.AddFlag(&copied)
		}
	})
	return cmd
}

// thisProgram is what is installed; tests have nothing copied.
var thisProgram = os.Executable

func (in *installation) run(cmd *cobra.Command) error {
	m, err := in.machine()
	if err != nil {
		return err
	}
	if in.options.Binary, err = thisProgram(); err != nil {
		return err
	}
	changes, err := in.configure(cmd, m)
	if err != nil {
		return err
	}
	in.options.Start = !in.noStart
	plan, err := m.Plan(in.options)
	if err != nil {
		return setupError(err)
	}
	out := cmd.OutOrStdout()
	showChanges(out, in.options.Role, changes)
	if in.dryRun {
		showPlan(out, m, plan)
		return nil
	}
	changed := plan.Changes()
	if err := m.Install(plan); err != nil {
		return setupError(fmt.Errorf("%w; what was done is undone", err))
	}
	showNotes(out, plan)
	if err := in.begin(out, m, changed); err != nil {
		return err
	}
	return in.next(cmd.Context(), out, m)
}

func (in *installation) machine() (*setup.Machine, error) {
	if in.root != "" {
		if info, err := os.Stat(in.root); err != nil || !info.IsDir() {
			return nil, exit.Failf(exit.NotFound, "", "--root %s: there is no such directory", in.root)
		}
		m, err := setup.Image(in.root)
		return m, exit.Fail(exit.Usage, "leave --root out", err)
	}
	if os.Geteuid() != 0 && !in.dryRun {
		return nil, exit.Failf(exit.Missing, "try again with sudo, or look at it with --dry-run", "this changes the machine and needs root")
	}
	return setup.This(), nil
}

// configure makes the configuration file: what is in it, with the flags that were typed. It has the daemon check what it
// is going to read. changes is what becomes of the file, for people.
func (in *installation) configure(cmd *cobra.Command, m *setup.Machine) (changes []string, err error) {
	if in.ownFile {
		text, err := m.Read(in.options.Role.Config())
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil // said by the plan
		}
		if err == nil {
			err = exit.Fail(exit.Usage, "examples/boost/boostd.yaml has all that may be in it", in.check(text))
		}
		return nil, err
	}
	typed, path := in.typed(cmd), in.options.Role.Config()
	text, err := m.Read(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && len(typed) == 0:
		return nil, nil // said by the plan
	case errors.Is(err, os.ErrNotExist):
		text = in.head()
		typed = append(typed, in.unsaid(m, typed)...)
	case err != nil:
		return nil, err
	default:
		in.options.Merged = text
	}
	hint := fmt.Sprintf("`scaffold %s --help` lists the flags", in.options.Role.Daemon())
	if err := in.allowed(m, text, typed); err != nil {
		return nil, err
	}
	merged, changes, err := settings.Merge(path, text, typed)
	if err != nil {
		return nil, exit.Fail(exit.Usage, hint, err)
	}
	file, err := settings.Parse(path, merged)
	if err == nil {
		err = file.Apply(in.fresh().Flags())
	}
	if err == nil {
		err = in.check(merged)
	}
	if err == nil {
		if err := in.beside(m, merged); err != nil {
			return nil, err
		}
	}
	if in.options.Merged == nil {
		changes = nil // all of it is shown, or nobody asked
	}
	if len(typed) > 0 {
		in.options.Config = merged
	}
	return changes, exit.Fail(exit.Usage, hint, err)
}

// fresh is the daemon's command with all flags as they are by themselves.
func (in *installation) fresh() *cobra.Command {
	switch in.options.Role {
	case setup.Controller:
		return daemons.Controld(nil)
	case setup.Router:
		return daemons.Routerd()
	case setup.Gateway:
		return gateway.Daemon()
	case setup.Agent:
		return daemons.Boostd()
	}
	return daemons.Hostd()
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

// typed are the daemon's flags that were typed.
func (in *installation) typed(cmd *cobra.Command) (all []settings.Setting) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if in.daemon.Flags().Lookup(f.Name) == nil || cmd.LocalNonPersistentFlags().Lookup(f.Name) == nil {
			return
		}
		var value yaml.Node
		if many, ok := f.Value.(pflag.SliceValue); ok {
			value.Encode(many.GetSlice()) //nolint:errcheck // strings have a form in YAML
			value.Style = yaml.FlowStyle
		} else if f.Value.Type() == "bool" {
			value = yaml.Node{Kind: yaml.ScalarNode, Value: f.Value.String()}
		} else {
			value.Encode(f.Value.String()) //nolint:errcheck // so has one
		}
		all = append(all, settings.Setting{Key: f.Name, Value: value})
	})
	return all
}

// head is how a new configuration file begins.
func (in *installation) head() []byte {
	role := in.options.Role
	verb := "restart"
	if role == setup.Gateway { // which then loses nothing; a restart drains
		verb = "reload"
	}
	return fmt.Appendf(nil, "# Written by `scaffold install %s`. Keys are the flags of `scaffold %s --help`.\n# After an edit: systemctl %s %s\n", role, role.Daemon(), verb, role.Unit())
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
			return exit.Fail(exit.Failed, "journalctl -u "+role.Unit()+" says why; the installation stays", err)
		}
		fmt.Fprintf(out, "%s is installed and runs\n", role)
		if role == setup.Agent {
			fmt.Fprintln(out, "`scaffold boost agent ls`, on the controller's machine, says whether it has joined")
		} else if trouble := setup.Well(role, wellWait); trouble != "" {
			fmt.Fprintf(out, "note: it is not well yet: %s\n", trouble)
		}
	}
	return nil
}

// showChanges says what becomes of a configuration file that is there; what is not named stays.
func showChanges(out io.Writer, role setup.Role, changes []string) {
	for _, c := range changes {
		fmt.Fprintf(out, "%s: %s\n", role.Config(), c)
	}
}

func showPlan(out io.Writer, m *setup.Machine, plan *setup.Plan) {
	for _, s := range plan.Steps {
		fmt.Fprintln(out, s)
		for line := range strings.Lines(s.Text()) {
			fmt.Fprint(out, "        | ", strings.TrimSuffix(line, "\n"), "\n")
		}
	}
	if line := m.Starts(plan); line != "" {
		fmt.Fprintln(out, line)
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
		return exit.Fail(exit.Refused, refused.Hint, err)
	case errors.As(err, &manifest):
		return exit.Fail(exit.Refused, "it was edited, or is of another version of scaffold: uninstall with that one", err)
	case errors.Is(err, setup.ErrNothing):
		return exit.Fail(exit.NotFound, "", err)
	}
	return err
}
