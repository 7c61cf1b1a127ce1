package cli

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

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controld"
	"scaffold.dev/scaffold/internal/durable"
	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/internal/store"
)

func stateCommand() *cobra.Command {
	cmd := group("state", "Back the network's state up, look at it, put a backup in")
	a := addAdmin(cmd)
	cmd.AddCommand(stateBackup(a), stateShow(a), stateRestore())
	return cmd
}

func stateBackup(a admin) *cobra.Command {
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
				return a.backup(cmd.Context(), cmd.OutOrStdout())
			}
			return a.backupFile(cmd, args[0])
		},
	}
}

// backupFile puts the backup in the place of an older one only once it is whole, and has been read back.
func (a admin) backupFile(cmd *cobra.Command, path string) error {
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
	if err := a.backup(cmd.Context(), f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fail(ExitFailed, "", fmt.Errorf("write the backup: %w", err))
	}
	b, err := store.ReadBackup(f)
	if err != nil {
		return fail(ExitFailed, "try again", fmt.Errorf("the backup did not come whole: %w", err))
	}
	if err := durable.Replace(f, path); err != nil {
		return fail(ExitFailed, "", fmt.Errorf("write the backup: %w", err))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: network %s, %d records\n", path, b.Network, b.Records)
	return nil
}

// backupPlace is the file that a backup becomes, or takes the place of. A device, a pipe or a directory is none: the
// rename that puts a whole backup there would remove it.
func backupPlace(path string) (string, error) {
	if path == "" {
		return "", failf(ExitUsage, "- is the standard output", "the backup's file has no name")
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return "", failf(ExitUsage, "name a file in it", "%s is a directory", path)
	case err == nil && !info.Mode().IsRegular():
		return "", failf(ExitUsage, "- is the standard output", "%s is no file that a backup could take the place of", path)
	case err == nil:
		return path, nil
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return "", failf(ExitNotFound, "make it first", "there is no directory %s", filepath.Dir(path))
	}
	return path, nil // what else is wrong shows when it is written
}

func (a admin) backup(ctx context.Context, to io.Writer) error {
	client, endpoint, err := a.dialAdmin()
	if err != nil {
		return err
	}
	stream, err := client.BackupState(ctx, connect.NewRequest(&apiv1.BackupStateRequest{}))
	if err != nil {
		return explain(err, endpoint, "")
	}
	defer stream.Close()
	for stream.Receive() {
		if _, err := to.Write(stream.Msg().Data); err != nil {
			return fail(ExitFailed, "", fmt.Errorf("write the backup: %w", err))
		}
	}
	if err := stream.Err(); err != nil {
		return explain(err, endpoint, "")
	}
	return nil
}

func stateShow(a admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show [FILE]",
		Short: "Say what is in a backup, or in the state of now",
		Example: `  scaffold state show
  scaffold state show /var/backups/scaffold-2026-05-01.state -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := a.readState(cmd.Context(), args)
			if err != nil {
				return err
			}
			if a.json() {
				return writeValue(cmd.OutOrStdout(), stateOf(b))
			}
			return drawTable(cmd.OutOrStdout(), func(t *table) { drawState(t, b) })
		},
	}
}

func (a admin) readState(ctx context.Context, args []string) (*store.Backup, error) {
	if len(args) > 0 {
		return readBackup(args[0])
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(a.backup(ctx, w)) }() // ends with the backup, or with r
	defer r.Close()
	b, err := store.ReadBackup(r)
	if err != nil {
		var known *exitError
		if errors.As(err, &known) {
			return nil, known
		}
		return nil, err
	}
	return b, nil
}

func drawState(t *table, b *store.Backup) {
	t.row("network", b.Network)
	t.row("id", b.ID)
	t.row("made", b.Made)
	t.row("by scaffold", b.Version)
	t.row("schema", b.Schema)
	t.row("terms", b.Epoch)
	kinds := b.Kinds()
	for _, kind := range sorted(kinds) {
		if kind != "epoch" && kind != "id" {
			t.row(kind, kinds[kind])
		}
	}
	t.row("services", strings.Join(serviceNames(b), ", "))
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
func readBackup(path string) (*store.Backup, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, failf(ExitNotFound, "`scaffold state backup` writes one", "%s: there is no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := store.ReadBackup(f)
	if err != nil {
		return nil, fail(ExitUsage, "take another backup", fmt.Errorf("%s: %w", path, err))
	}
	return b, nil
}

func stateRestore() *cobra.Command {
	var cfg store.Config
	var tls pemFiles
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
			b, err := readBackup(args[0])
			if err != nil {
				return err
			}
			if cfg.Network == "" {
				cfg.Network = b.Network
			}
			if err := checkEtcd(cfg.Endpoints); err != nil {
				return fail(ExitUsage, "", err)
			}
			if cfg.TLS, err = tls.config("etcd", cfg.Endpoints); err != nil {
				return fail(ExitUsage, "", err)
			}
			if cfg.Log, err = obs.NewLogger(cmd.ErrOrStderr(), "text", "error"); err != nil {
				return err
			}
			if err := store.Restore(cmd.Context(), cfg, b); err != nil {
				return explainRestore(cmd.Context(), err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "network %s of %s is restored, %d records: start its controller\n", b.Network, b.Made, b.Records)
			return nil
		},
	}
	set := cmd.Flags()
	set.StringVar(&cfg.Dir, "data", controld.DefaultData, "directory of the state")
	set.StringSliceVar(&cfg.Endpoints, "etcd", nil, "endpoints of the etcd that the controllers will use, instead of --data")
	set.StringVar(&tls.ca, "etcd-ca", "", "certificates (PEM) of those who may vouch for that etcd")
	set.StringVar(&tls.cert, "etcd-cert", "", "certificate (PEM) to show to it")
	set.StringVar(&tls.key, "etcd-key", "", "its private key (PEM)")
	set.StringVar(&cfg.Network, "network", "", "refuse backups of other networks than this")
	return cmd
}

func explainRestore(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return failf(ExitFailed, "the same command begins it anew", "interrupted: the backup is not restored")
	case errors.Is(err, store.ErrNotEmpty), errors.Is(err, store.ErrRunning), errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrOtherNetwork):
		return fail(ExitRefused, "", err)
	case errors.Is(err, store.ErrAway):
		return fail(ExitUnreachable, "", err)
	}
	return fail(ExitFailed, "", err)
}
