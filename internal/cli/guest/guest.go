package guest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const listGuests = "scaffold guest ls"

const aboutGuests = `A guest is a network namespace of this machine that has no daemon of its own: a container, or what
"ip netns add" made. This host's hostd is its edge. Programs in it, unmodified, connect to names and serve under
names as the host's own do: their flows run straight, fail over and move with the host.

The guest gets an interface scaffold0 for this, an address on it, routes to the network's services, and names on its
own loopback. What else it has, of a container runtime for instance, stays as it is.`

// Command is `scaffold guest`.
func Command() *cobra.Command {
	cmd := command.Group("guest", "Let containers and other network namespaces of this host connect and serve by name")
	cmd.Long = aboutGuests
	f := &remote.HostDaemons{Admin: remote.AddAdmin(cmd)}
	cmd.PersistentFlags().StringVar(&f.Host, "host", "", "this host of the lab")
	cmd.AddCommand(guestAdd(f), guestRemove(f), guestList(f), guestHook(f))
	for _, sub := range cmd.Commands() {
		command.Exclusive(sub, "api host", "netns pid")
	}
	return cmd
}

// A guestPlace is how a namespace is named on the command line.
type guestPlace struct {
	byPID bool // --pid was given
	pid   int
	path  string
	serve string
}

// request makes one of the arguments.
func (p guestPlace) request(args []string) (*apiv1.AddGuestRequest, error) {
	name := ""
	if len(args) == 1 {
		name = args[0]
	}
	switch {
	case p.byPID && p.pid <= 0:
		return nil, exit.Failf(exit.Usage, "podman inspect and docker inspect say 0 of a container that is not running: start it first",
			"--pid %d: want the number of a process", p.pid)
	case p.byPID:
		return &apiv1.AddGuestRequest{Name: output.OrElse(name, fmt.Sprintf("pid-%d", p.pid)), Netns: fmt.Sprintf("/proc/%d/ns/net", p.pid)}, nil
	case p.path != "":
		path, err := filepath.Abs(p.path)
		return &apiv1.AddGuestRequest{Name: output.OrElse(name, filepath.Base(path)), Netns: path}, err
	case name == "" || strings.Contains(name, "/"):
		return nil, exit.Failf(exit.Usage, "as in: scaffold guest add web1 --pid 4711", "which namespace? Give the NAME that `ip netns ls` shows, --pid or --netns")
	}
	return &apiv1.AddGuestRequest{Name: name, Netns: "/run/netns/" + name}, nil
}

// listing is the command that shows what may have been meant.
func listing(req *apiv1.AddGuestRequest) string {
	if req.Serve != "" {
		return remote.ListServices
	}
	return "ip netns ls"
}

// addGuest asks the host's daemon for a guest.
func addGuest(ctx context.Context, client apiv1connect.LocalClient, req *apiv1.AddGuestRequest, endpoint string) (*apiv1.Guest, error) {
	ctx, cancel := context.WithTimeout(ctx, guestTime)
	defer cancel()
	return remote.Ask(ctx, func(ctx context.Context, r *connect.Request[apiv1.AddGuestRequest]) (*connect.Response[apiv1.Guest], error) {
		answer, err := client.AddGuest(ctx, r)
		var said *connect.Error
		switch {
		case !errors.As(err, &said):
		case said.Code() == connect.CodePermissionDenied: // it is the daemon's that is missing, nobody's refusal
			return nil, exit.Failf(exit.Missing, "hostd needs CAP_SYS_ADMIN and CAP_SYS_PTRACE, as the unit of `scaffold install host` gives them", "%s", said.Message())
		case said.Code() == connect.CodeNotFound && strings.HasPrefix(said.Message(), "no process"):
			return nil, exit.Failf(exit.NotFound, "", "%s", said.Message())
		}
		return answer, err
	}, req, endpoint, listing(req))
}

// guestTime bounds the setting up: a busy machine loads programs into the kernel for seconds.
const guestTime = time.Minute

func guestAdd(f *remote.HostDaemons) *cobra.Command {
	var place guestPlace
	cmd := &cobra.Command{
		Use:   "add [NAME] [--pid PID | --netns PATH]",
		Short: "Make this host the edge of a network namespace",
		Long: `Make this host the edge of a network namespace: of the one that "ip netns" calls NAME, of a process, or at a path.
It lasts until it is removed, or the namespace's name or process is gone.

Programs in it serve a name by binding its address. With --serve those that listen on all addresses, as most
containers do, serve that name too, by IPv6 and TCP, and stay reachable otherwise as they were.`,
		Example: `  ip netns add web1 && scaffold guest add web1
  scaffold guest add web2 --pid 4711 --serve web
  scaffold guest add db --pid 4712      # of podman inspect -f '{{.State.Pid}}' db
  scaffold guest add --netns /run/user/1000/netns/cni-4711
  ip netns exec web1 scaffold run --service web -- nginx -g 'daemon off;'`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().IntVar(&place.pid, "pid", 0, "the namespace of this process; the guest ends with it")
	cmd.Flags().StringVar(&place.path, "netns", "", "the namespace at this path")
	cmd.Flags().StringVar(&place.serve, "serve", "", "programs that listen on no address in particular (TCP, IPv6) serve this name at their ports")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		place.byPID = cmd.Flags().Changed("pid")
		req, err := place.request(args)
		if err != nil {
			return err
		}
		req.Serve = place.serve
		client, node, err := f.Local()
		if err != nil {
			return err
		}
		g, err := addGuest(cmd.Context(), client, req, node.Path)
		if err != nil {
			return err
		}
		return f.Print(cmd.OutOrStdout(), g, func(t *output.Table) { drawGuests(t, []*apiv1.Guest{g}) })
	}
	return cmd
}

func guestRemove(f *remote.HostDaemons) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Let a guest be by itself again",
		Long: `Let a guest be by itself again: what it serves is withdrawn, its flows are ended, and its interface scaffold0, routes
and resolver are taken away. Its clients meet other instances at once, where there are any.`,
		Example: "  scaffold guest rm web1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, node, err := f.Local()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), guestTime)
			defer cancel()
			answer, err := remote.Ask(ctx, client.RemoveGuest, &apiv1.RemoveGuestRequest{Name: args[0]}, node.Path, listGuests)
			if err != nil {
				return err
			}
			return f.Print(cmd.OutOrStdout(), answer, func(*output.Table) {})
		},
	}
}

func guestList(f *remote.HostDaemons) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List this host's guests, what they serve and how many flows they have",
		Example: "  scaffold guest ls\n  scaffold guest ls --lab web --host c1 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, node, err := f.Local()
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListGuests, &apiv1.ListGuestsRequest{}, node.Path, "")
			if err != nil {
				return err
			}
			return f.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawGuests(t, all.Guests) })
		},
	}
}

func drawGuests(t *output.Table, all []*apiv1.Guest) {
	t.Row("NAME", "NAMESPACE", "IDENTITY", "SERVES", "FLOWS", "TROUBLE")
	for _, g := range all {
		t.Row(g.Name, g.Netns, g.Identity, output.OrElse(strings.Join(g.Serves, ", "), "-"), g.Flows, output.OrElse(g.Trouble, "-"))
	}
}
