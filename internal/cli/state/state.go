package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/etcd"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/linux/durable"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// Command is `scaffold state`.
func Command() *cobra.Command {
	cmd := command.Group("state", "Back the network's state up, look at it, put a backup in")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(command.Plain(stateBackup(a)), stateShow(a), command.Alone(stateRestore()))
	return cmd
}

func stateBackup(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all that the network's controllers have stored into a file",
		Long: `Writes services, policies, weights, drains, hosts, routers and keys, as of one moment, while the
network runs. "-" is the standard output. What hosts register and how they fare is not in it: they tell
it again.

The file holds the network's private key, where it has one: it is written for its owner alone.`,
		Example: "  scaffold state backup /var/backups/scaffold-$(date +%F).state",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" {
				return writeBackup(cmd.Context(), a, cmd.OutOrStdout())
			}
			return backupFile(a, cmd, args[0])
		},
	}
}

// backupFile puts the backup in the place of an older one only once it is whole, and has been read back.
func backupFile(a remote.Admin, cmd *cobra.Command, path string) error {
	path, err := backupPlace(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".scaffold-state-*") // for its owner alone
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := writeBackup(cmd.Context(), a, f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return exit.Fail(exit.Failed, "", fmt.Errorf("write the backup: %w", err))
	}
	b, err := store.ReadBackup(f)
	if err != nil {
		return exit.Fail(exit.Failed, "try again", fmt.Errorf("the backup did not come whole: %w", err))
	}
	if err := durable.Replace(f, path); err != nil {
		return exit.Fail(exit.Failed, "", fmt.Errorf("write the backup: %w", err))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: network %s, %s\n", path, b.Network, command.Count(uint32(b.Records), "record"))
	return nil
}

// backupPlace is the file that a backup becomes, or takes the place of. A device, a pipe or a directory is none: the
// rename that puts a whole backup there would remove it.
func backupPlace(path string) (string, error) {
	if path == "" {
		return "", exit.Failf(exit.Usage, "name a file, or - for the standard output", "the backup's file has no name")
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return "", exit.Failf(exit.Usage, "name a file in it", "%s is a directory", path)
	case err == nil && !info.Mode().IsRegular():
		return "", exit.Failf(exit.Usage, "name a file, or - for the standard output", "%s is no file that a backup could take the place of", path)
	case err == nil:
		return path, nil
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return "", exit.Failf(exit.NotFound, "mkdir -p "+filepath.Dir(path)+" makes it", "there is no directory %s", filepath.Dir(path))
	}
	return path, nil // what else is wrong shows when it is written
}

func writeBackup(ctx context.Context, a remote.Admin, to io.Writer) error {
	client, endpoint, err := a.DialAdmin()
	if err != nil {
		return err
	}
	stream, err := client.BackupState(ctx, connect.NewRequest(&apiv1.BackupStateRequest{}))
	if err != nil {
		return remote.Explain(err, endpoint, "")
	}
	defer stream.Close()
	for stream.Receive() {
		if _, err := to.Write(stream.Msg().Data); err != nil {
			return exit.Fail(exit.Failed, "", fmt.Errorf("write the backup: %w", err))
		}
	}
	if err := stream.Err(); err != nil {
		return remote.Explain(err, endpoint, "")
	}
	return nil
}

func stateShow(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show [FILE]",
		Short: "Say what is in a backup, or in the state of now",
		Example: `  scaffold state show
  scaffold state show /var/backups/scaffold-2026-05-01.state -o json`,
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (command.Typed(cmd, "api") || command.Typed(cmd, "lab")) {
				return fmt.Errorf("%s: of a file, or of the controller that --api or --lab names: leave one of them out", cmd.CommandPath())
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := findBackup(cmd.Context(), a, args)
			if err != nil {
				return err
			}
			if a.JSON() {
				return output.WriteValue(cmd.OutOrStdout(), stateOf(b))
			}
			return output.Draw(cmd.OutOrStdout(), func(t *output.Table) { drawState(t, b) })
		},
	}
}

func findBackup(ctx context.Context, a remote.Admin, args []string) (*store.Backup, error) {
	if len(args) > 0 {
		return readBackup(ctx, args[0])
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(writeBackup(ctx, a, w)) }() // ends with the backup, or with r
	defer r.Close()
	b, err := store.ReadBackup(r)
	if err != nil {
		var known *exit.Error
		if errors.As(err, &known) {
			return nil, known
		}
		return nil, err
	}
	return b, nil
}

func drawState(t *output.Table, b *store.Backup) {
	t.Row("network", b.Network)
	t.Row("id", b.ID)
	t.Row("made", b.Made)
	t.Row("by scaffold", b.Version)
	t.Row("schema", b.Schema)
	t.Row("terms", b.Epoch)
	kinds := b.Kinds()
	for _, kind := range output.Sorted(kinds) {
		if kind != "epoch" && kind != "id" {
			t.Row(kind, kinds[kind])
		}
	}
	t.Row("services", strings.Join(serviceNames(b), ", "))
}

func serviceNames(b *store.Backup) []string {
	names := []string{}
	for _, s := range b.State.Services {
		names = append(names, s.Name)
	}
	return names
}

// A stateSummary is what is in a backup, for programs.
type stateSummary struct {
	store.BackupHeader
	Kinds    map[string]int `json:"kinds"` // records, by kind
	Services []string       `json:"services"`
}

func stateOf(b *store.Backup) stateSummary {
	return stateSummary{b.BackupHeader, b.Kinds(), serviceNames(b)}
}

// readBackup opens a file.
func readBackup(ctx context.Context, path string) (*store.Backup, error) {
	f, err := command.OpenFile(ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, exit.Failf(exit.NotFound, "`scaffold state backup` writes one", "%s: there is no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := store.ReadBackup(f)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, exit.Fail(exit.Usage, "take another backup", fmt.Errorf("%s: %w", path, err))
	}
	return b, nil
}

func stateRestore() *cobra.Command {
	var cfg store.Config
	var tls etcd.Files
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup into an empty directory or etcd, before the controller starts",
		Long: `Puts a backup into the store of a controller that does not run: an empty --data, or an etcd (--etcd)
that knows nothing of the network. For controllers that keep the state among themselves restore on one
machine, start that one as the first of the cluster, and let the others join it.

The controller that starts then takes hosts and routers as they report: who moved or joined since the
backup was made stays where it is. Services of since then are gone, and it says which of them hosts
still serve. Tokens are not restored: one that was used could be used again.`,
		Example: `  scaffold state restore /var/backups/scaffold-2026-05-01.state --data /var/lib/scaffold/controld
  scaffold state restore net.state --etcd http://10.0.0.1:2379`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readBackup(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if cfg.Network == "" {
				cfg.Network = b.Network
			}
			if err := etcd.Check(cfg.Endpoints); err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			if cfg.TLS, err = tls.Config("etcd", cfg.Endpoints); err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			if cfg.Log, err = obs.NewLogger(cmd.ErrOrStderr(), "text", "error"); err != nil {
				return err
			}
			if err := store.Restore(cmd.Context(), cfg, b); err != nil {
				return explainRestore(cmd.Context(), err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "network %s of %s is restored, %s: start its controller (systemctl start scaffold-controld)\n", b.Network, b.Made, command.Count(uint32(b.Records), "record"))
			return nil
		},
	}
	set := cmd.Flags()
	set.StringVar(&cfg.Dir, "data", config.DefaultData, "directory of the state")
	set.StringSliceVar(&cfg.Endpoints, "etcd", nil, "endpoints of the etcd that the controllers will use, instead of --data")
	tls.Add(set)
	set.StringVar(&cfg.Network, "network", "", "refuse backups of other networks than this")
	command.Exclusive(cmd, "data etcd")
	return cmd
}

func explainRestore(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return exit.Failf(exit.Failed, "the same command begins it anew", "interrupted: the backup is not restored")
	case errors.Is(err, store.ErrNotEmpty), errors.Is(err, store.ErrRunning), errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrOtherNetwork):
		return exit.Fail(exit.Refused, "", err)
	case errors.Is(err, store.ErrAway):
		return exit.Fail(exit.Unreachable, "", err)
	}
	return exit.Fail(exit.Failed, "", err)
}
