package diagnosis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/operate/doctor"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/operate/support"
	"scaffold.dev/scaffold/sid"
)

// SupportCommand is `scaffold support`.
func SupportCommand() *cobra.Command {
	return command.Group("support", "Gather what helps others to help", supportDump())
}

// supportFlags are the flags of support dump as they are typed.
type supportFlags struct {
	*remote.Remote
	path    string
	since   time.Duration
	noFlows bool
}

func supportDump() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Write an archive of what this machine's daemons, kernel and logs say",
		Long: `Dump writes a gzipped tar file: versions, what doctor finds, what each daemon of this machine says of itself
and of the network, metrics and goroutines, interfaces, routes, rules, filters, sockets, logs. MANIFEST.json in it
says what could not be had, and why. Daemons that are dead or hang are left out after 10 seconds.

Without a daemon of this machine that answers it looks into the only running lab, as with --lab.

Private keys, tokens and passwords are never in it. Addresses, names of hosts and services and the command lines
of processes are: look before you pass it on.`,
		Example: "  sudo scaffold support dump\n  sudo scaffold support dump -w - | ssh laptop 'cat > s1.tar.gz'\n  sudo scaffold support dump --lab web",
		Args:    cobra.NoArgs,
	}
	f := &supportFlags{Remote: remote.AddLocal(cmd.Flags())}
	cmd.Flags().StringVarP(&f.path, "write", "w", "", "file to write, - for the standard output (default: scaffold-support-HOST-TIME.tar.gz here)")
	cmd.Flags().DurationVar(&f.since, "since", 24*time.Hour, "how far back the journal is read")
	cmd.Flags().BoolVar(&f.noFlows, "no-flows", false, "leave out flows, with their peers' addresses and processes")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.write(cmd) }
	return cmd
}

func (f *supportFlags) write(cmd *cobra.Command) error {
	if f.since < 0 {
		return exit.Failf(exit.Usage, "as in --since 2h", "--since %v: want how far back, above 0", f.since)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	top := fmt.Sprintf("scaffold-support-%s-%s", host, time.Now().UTC().Format("20060102-150405"))
	chosen := ""
	f.Lab, chosen = f.only()
	sources, err := f.sources()
	if err != nil {
		return err
	}
	w, path := cmd.OutOrStdout(), f.path
	if path != "-" {
		path = output.OrElse(path, top+".tar.gz")
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return exit.Failf(exit.Refused, "name another file with -w", "%s is there already", path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return exit.Failf(exit.NotFound, "mkdir -p "+filepath.Dir(path)+" makes it", "there is no directory %s", filepath.Dir(path))
		}
		if err != nil {
			return err
		}
		defer file.Close()
		w = file
	} else if command.ToTerminal(w) {
		return exit.Failf(exit.Usage, "", "an archive is no text: name a file with -w, or pipe it")
	}
	m, err := support.Dump(cmd.Context(), w, top, obs.Version(), sources)
	if err != nil {
		if path != "-" {
			os.Remove(path) // half an archive helps nobody
		}
		return err
	}
	fmt.Fprint(cmd.ErrOrStderr(), chosen)
	tellDump(cmd.ErrOrStderr(), path, m)
	return nil
}

func tellDump(w io.Writer, path string, m *support.Manifest) {
	missing := m.Missing()
	fmt.Fprintf(w, "%s: %s, and %d could not be read\n", path, command.Count(uint32(len(m.Entries)-len(missing)), "file"), len(missing))
	for _, e := range missing {
		reason, _, _ := strings.Cut(e.Error, "\n")
		fmt.Fprintf(w, "  %s: %.120s\n", e.Name, reason)
	}
}

// only is the lab to look into where none was named and no daemon of this machine answers: the only one that runs. Of
// several none is chosen. why is a line for people, "" where nothing was to choose.
func (f *supportFlags) only() (lab, why string) {
	sockets, _ := filepath.Glob(filepath.Join(f.Remote.Run, "*.sock")) // the pattern is ours
	if f.Lab != "" || slices.ContainsFunc(sockets, f.Alive) {
		return f.Lab, ""
	}
	labs, _ := f.InLabs("*", "*.sock")
	names := output.Sorted(labs)
	switch len(names) {
	case 0:
		return "", "no daemon of this machine answers and no lab runs here: the archive has only what the machine itself says\n"
	case 1:
		return names[0], fmt.Sprintf("no daemon of this machine answers: the archive has lab %s\n", names[0])
	}
	return "", fmt.Sprintf("no daemon of this machine answers; --lab NAME looks into a lab: %s\n", strings.Join(names, ", "))
}

// sources are this machine's, or a lab's.
func (f *supportFlags) sources() ([]support.Source, error) {
	all := append(support.Machine(f.since), support.Examination("machine/doctor.json", func() any { return doctor.Examine(doctor.Here(sid.DefaultSpace())) }))
	all = append(all, support.Files("config", "/etc/scaffold/*.yaml")...)
	dir := f.Remote.Run
	if f.Lab != "" {
		dir = filepath.Join(dir, "lab", f.Lab)
		if _, err := os.Stat(dir); err != nil {
			return nil, exit.Fail(exit.NotFound, "`scaffold lab status` lists them", fmt.Errorf("no lab %q on this machine", f.Lab))
		}
		all = append(all, support.Files("lab", filepath.Join(dir, "*.json"), filepath.Join(dir, "*.yaml"), filepath.Join(dir, "*", "*.log"), filepath.Join(dir, "*.log"))...)
	}
	for _, pattern := range []string{"*.sock", "*/*.sock"} {
		if f.Lab == "" && pattern != "*.sock" {
			continue // labs are only looked into when they are named
		}
		sockets, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are ours
		for _, socket := range sockets {
			all = append(all, f.daemon(dir, socket)...)
		}
	}
	return all, nil
}

// daemon is what the daemon behind a socket says.
func (f *supportFlags) daemon(dir, socket string) []support.Source {
	kind := strings.TrimSuffix(filepath.Base(socket), ".sock")
	client, base, err := api.Dial("unix:" + socket)
	if err != nil {
		return nil // too long a path: of no daemon
	}
	under, _ := filepath.Rel(dir, strings.TrimSuffix(socket, ".sock"))
	all := support.Daemon(kind, "daemons/"+under, client, base)
	switch {
	case kind == "hostd" && !f.noFlows:
		all = append(all, support.FlowsOf("daemons/"+under, client, base))
	case kind == "controld":
		all = append(all, pastEvents("daemons/"+under, apiv1connect.NewAdminClient(client, base)))
	}
	return all
}

// pastEvents are all that the controller remembers, a line each.
func pastEvents(dir string, client apiv1connect.AdminClient) support.Source {
	return support.Source{Name: dir + "/events.jsonl", Read: func(ctx context.Context) ([]byte, error) {
		stream, err := client.WatchEvents(ctx, connect.NewRequest(&apiv1.WatchEventsRequest{History: math.MaxUint32}))
		if err != nil {
			return nil, err
		}
		defer stream.Close()
		var out bytes.Buffer
		for stream.Receive() {
			if err := output.WriteJSON(&out, stream.Msg(), ""); err != nil {
				return out.Bytes(), err
			}
		}
		return out.Bytes(), stream.Err()
	}}
}
