package members

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/views"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

const listHosts = "scaffold host ls"

// HostCommand is `scaffold host`.
func HostCommand() *cobra.Command {
	cmd := command.Group("host", "Look at the hosts of the network and drain them")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(hostList(a), hostShow(a), hostStatus(a), forgetCommand(a, trust.Host, listHosts), hostDrain(a), hostUndrain(a))
	return cmd
}

func hostList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the hosts, where they are attached and how they fare",
		Example: "  scaffold host ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialAdmin()
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListHosts, &apiv1.ListHostsRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			slices.SortFunc(all.Hosts, func(x, y *apiv1.Host) int { return strings.Compare(x.Name, y.Name) })
			return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawHosts(t, all.Hosts); views.Open(t, all.Trust) })
		},
	}
}

func drawHosts(t *output.Table, hosts []*apiv1.Host) {
	t.Row("NAME", "STATE", "LOCATOR", "ROUTER", "PORT", "FLOWS", "CPU", "JOINED")
	for _, h := range hosts {
		t.Row(h.Name, h.State, h.Locator, h.Router, h.Port, h.Flows, percent(h.Cpu), output.Ago(h.JoinedUnixMs))
	}
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", share*100) }

func hostShow(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one host and the instances on it",
		Example: "  scaffold host show s1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialAdmin()
			if err != nil {
				return err
			}
			host, err := remote.Ask(cmd.Context(), client.GetHost, &apiv1.GetHostRequest{Name: args[0]}, endpoint, listHosts)
			if err != nil {
				return err
			}
			return showHost(a, cmd.OutOrStdout(), host)
		},
	}
}

func showHost(a remote.Admin, w io.Writer, h *apiv1.Host) error {
	if a.JSON() {
		return output.WriteJSON(w, h, "  ")
	}
	err := output.Draw(w, func(t *output.Table) {
		t.Row("host", h.Name)
		t.Row("state", h.State)
		t.Row("locator", h.Locator)
		t.Row("identity", h.Identity)
		t.Row("attached to", strings.TrimSpace(h.Router+" "+h.Port))
		t.Row("flows", h.Flows)
		t.Row("cpu", percent(h.Cpu))
		t.Row("joined", output.Ago(h.JoinedUnixMs))
		t.Row("version", h.Version)
	})
	if err != nil || len(h.Instances) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return output.Draw(w, func(t *output.Table) { views.Instances(t, h.Instances) })
}
