package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the state of the network in a few lines",
		Example: "  scaffold status\n  scaffold status --lab web",
		Args:    cobra.NoArgs,
	}
	a := addAdmin(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, endpoint, err := a.dialAdmin()
		if err != nil {
			return err
		}
		status, err := ask(cmd.Context(), client.GetStatus, &apiv1.GetStatusRequest{}, endpoint, "")
		if err != nil {
			return err
		}
		return a.print(cmd.OutOrStdout(), status, func(t *table) { drawStatus(t, status, endpoint) })
	}
	return cmd
}

func drawStatus(t *table, s *apiv1.Status, endpoint string) {
	t.row("network", s.Network)
	t.row("asked", endpoint)
	t.row("leader", s.Leader)
	t.row("up for", age(s.StartedUnixMs))
	t.row("version", s.Version)
	t.row("trust", trustText(s.Trust))
	t.row("names", "."+s.Domain)
	t.row("services in", s.GetSpace().GetServices())
	t.row("locators in", s.GetSpace().GetAs())
	t.row("identities in", s.GetSpace().GetIdentities())
	t.row("rules", "generation "+generation(s.Generation))
	for i, c := range s.Controllers {
		label := ""
		if i == 0 {
			label = "controllers"
		}
		t.row(label, c.Name+" "+c.State)
	}
	if s.Restored != "" {
		t.row("restored", fmt.Sprintf("the state is that of %s; %d services that hosts serve are not in it", s.Restored, s.UnknownServices))
	}
	t.row("hosts", s.Hosts)
	t.row("routers", s.Routers)
	t.row("services", fmt.Sprintf("%d with %d instances", s.Services, s.Instances))
}

// trustText says what an open network means.
func trustText(trust string) string {
	if trust == "open" {
		return "open: anybody who reaches it may join it"
	}
	return trust
}

// drawOpen ends the list of an open network's members.
func drawOpen(t *table, trust string) {
	if trust == "open" {
		t.row("(trust: open: anybody who reaches this network may join it)")
	}
}
