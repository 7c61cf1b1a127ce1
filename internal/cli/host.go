package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

const listHosts = "scaffold host ls"

func hostCommand() *cobra.Command {
	cmd := group("host", "Look at the hosts of the network and drain them")
	a := addAdmin(cmd)
	cmd.AddCommand(hostList(a), hostShow(a), hostStatus(a), forgetCommand(a, trust.Host, listHosts), hostDrain(a), hostUndrain(a))
	return cmd
}

func hostList(a admin) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the hosts, where they are attached and how they fare",
		Example: "  scaffold host ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.dialAdmin()
			if err != nil {
				return err
			}
			all, err := ask(cmd.Context(), client.ListHosts, &apiv1.ListHostsRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			slices.SortFunc(all.Hosts, func(x, y *apiv1.Host) int { return strings.Compare(x.Name, y.Name) })
			return a.print(cmd.OutOrStdout(), all, func(t *table) { drawHosts(t, all.Hosts); drawOpen(t, all.Trust) })
		},
	}
}

func drawHosts(t *table, hosts []*apiv1.Host) {
	t.row("NAME", "STATE", "LOCATOR", "ROUTER", "PORT", "FLOWS", "CPU", "JOINED")
	for _, h := range hosts {
		t.row(h.Name, h.State, h.Locator, h.Router, h.Port, h.Flows, percent(h.Cpu), ago(h.JoinedUnixMs))
	}
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", share*100) }

func hostShow(a admin) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one host and the instances on it",
		Example: "  scaffold host show s1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.dialAdmin()
			if err != nil {
				return err
			}
			host, err := ask(cmd.Context(), client.GetHost, &apiv1.GetHostRequest{Name: args[0]}, endpoint, listHosts)
			if err != nil {
				return err
			}
			return a.showHost(cmd.OutOrStdout(), host)
		},
	}
}

func (a admin) showHost(w io.Writer, h *apiv1.Host) error {
	if a.json() {
		return writeJSON(w, h, "  ")
	}
	err := drawTable(w, func(t *table) {
		t.row("host", h.Name)
		t.row("state", h.State)
		t.row("locator", h.Locator)
		t.row("identity", h.Identity)
		t.row("attached to", strings.TrimSpace(h.Router+" "+h.Port))
		t.row("flows", h.Flows)
		t.row("cpu", percent(h.Cpu))
		t.row("joined", ago(h.JoinedUnixMs))
		t.row("version", h.Version)
	})
	if err != nil || len(h.Instances) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return drawTable(w, func(t *table) { drawInstances(t, h.Instances) })
}
