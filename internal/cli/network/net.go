package network

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/views"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// Command is `scaffold net`.
func Command() *cobra.Command {
	cmd := command.Group("net", "Look at the network as a whole")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(netShow(a), netPath(a), netSwitch(a), netKey(a))
	return cmd
}

func netShow(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the topology: routers, their links and hosts, and who resolves names",
		Example: "  scaffold net show\n  scaffold net show -o json | jq .routers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialAdmin()
			if err != nil {
				return err
			}
			n, err := readNetwork(cmd.Context(), client, endpoint)
			if err != nil {
				return err
			}
			if a.JSON() {
				return n.writeJSON(cmd.OutOrStdout())
			}
			return n.draw(cmd.OutOrStdout())
		},
	}
}

// network is the answers of three calls, as one picture.
type network struct {
	status  *apiv1.Status
	routers *apiv1.ListRoutersResponse
	hosts   *apiv1.ListHostsResponse
}

func readNetwork(ctx context.Context, c apiv1connect.AdminClient, at string) (n network, err error) {
	if n.status, err = remote.Ask(ctx, c.GetStatus, &apiv1.GetStatusRequest{}, at, ""); err != nil {
		return n, err
	}
	if n.routers, err = remote.Ask(ctx, c.ListRouters, &apiv1.ListRoutersRequest{}, at, ""); err != nil {
		return n, err
	}
	views.SortRouters(n.routers.Routers)
	n.hosts, err = remote.Ask(ctx, c.ListHosts, &apiv1.ListHostsRequest{}, at, "")
	return n, err
}

func (n network) writeJSON(w io.Writer) error {
	parts := map[string]proto.Message{"status": n.status, "routers": n.routers, "hosts": n.hosts}
	out := map[string]json.RawMessage{}
	for key, msg := range parts {
		raw, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(msg)
		if err != nil {
			return err
		}
		var list map[string]json.RawMessage
		if json.Unmarshal(raw, &list) == nil && list[key] != nil {
			raw = list[key] // {"routers":{"routers":[...]}} helps nobody
		}
		out[key] = raw
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func (n network) draw(w io.Writer) error {
	fmt.Fprintf(w, "network %s: services %s, locators %s, names end in .%s\n", n.status.Network,
		n.status.GetSpace().GetServices(), n.status.GetSpace().GetAs(), n.status.Domain)
	byName := map[string]*apiv1.Host{}
	for _, h := range n.hosts.Hosts {
		byName[h.Name] = h
	}
	for _, r := range n.routers.Routers {
		fmt.Fprintf(w, "\n%s  %s router, %s, hosts %s\n", r.Name, views.Kind(r), r.State, output.OrElse(r.Block, "-"))
		if err := output.Draw(w, func(t *output.Table) { drawLinks(t, r, byName) }); err != nil {
			return err
		}
	}
	return nil
}

func drawLinks(t *output.Table, r *apiv1.Router, hosts map[string]*apiv1.Host) {
	for _, l := range r.Links {
		peer, detail := l.Peer, l.PeerPort
		if h := hosts[l.Peer]; h != nil {
			peer, detail = "host "+h.Name, h.Locator+" "+h.State
		}
		state := "up"
		switch {
		case !l.Up:
			state = "down"
		case l.OneSided:
			state = "unused"
			detail = strings.TrimSpace(detail + " does not report it")
		}
		t.Row("  "+l.Port, state, fmt.Sprintf("cost %d", l.Cost), output.OrElse(peer, "nobody answers"), detail)
	}
}
