package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// hostStatus asks a host's own daemon: what the controller knows of it is `host show`.
func hostStatus(a admin) *cobra.Command {
	f := &flows{admin: a}
	var counters bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how this host, or a lab's, stands: its uplinks, and why it is not in the network",
		Example: `  scaffold host status
  scaffold host status --lab web --host c1 --counters`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&f.host, "host", "", "only this host of the lab")
	cmd.Flags().BoolVar(&counters, "counters", false, "also what its edge counts: packets that it dropped, by reason, and more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return f.each(func(client apiv1connect.LocalClient, node nodeSocket) error {
			s, err := ask(cmd.Context(), client.GetHostStatus, &apiv1.GetHostStatusRequest{}, node.path, "")
			if err != nil {
				return err
			}
			if a.json() {
				return writeJSON(cmd.OutOrStdout(), s, "  ")
			}
			return drawHostStatus(cmd.OutOrStdout(), s, counters)
		})
	}
	return cmd
}

func drawHostStatus(w io.Writer, s *apiv1.HostStatus, counters bool) error {
	err := drawTable(w, func(t *table) {
		t.row("host", s.Name)
		t.row("state", s.State)
		if s.Reason != "" {
			t.row("why", s.Reason)
		}
		t.row("network", s.Network)
		if s.Trust != "" { // it was told by the controller
			t.row("trust", trustText(s.Trust))
		}
		t.row("identity", s.Identity)
		t.row("controller", s.Controller)
		t.row("flows", s.Flows)
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	err = drawTable(w, func(t *table) { drawUplinks(t, s.Uplinks) })
	if err == nil {
		err = drawPermits(w, s)
	}
	if err != nil || !counters {
		return err
	}
	fmt.Fprintln(w)
	return drawTable(w, func(t *table) {
		for _, name := range sorted(s.Counters) {
			t.row(name, s.Counters[name])
		}
	})
}

// drawPermits shows what the host may serve by permit, and what it would serve and may not.
func drawPermits(w io.Writer, s *apiv1.HostStatus) error {
	if len(s.Permits) > 0 {
		fmt.Fprintln(w)
		err := drawTable(w, func(t *table) {
			t.row("PERMIT FOR", "UNTIL", "FROM", "TROUBLE")
			for _, p := range s.Permits {
				until := "-"
				if p.NotAfterUnix != 0 {
					until = time.Unix(p.NotAfterUnix, 0).UTC().Format(time.RFC3339)
				}
				t.row(orElse(p.Service, "-"), until, p.From, p.Trouble)
			}
		})
		if err != nil {
			return err
		}
	}
	if len(s.Refused) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return drawTable(w, func(t *table) {
		t.row("REFUSED", "PORT", "WHY")
		for _, g := range s.Refused {
			t.row(g.Service, fmt.Sprintf("%s/%d", g.Proto, g.Port), g.Reason)
		}
	})
}

func drawUplinks(t *table, all []*apiv1.Uplink) {
	t.row("UPLINK", "LINK", "ROUTER", "LOCATOR", "MTU")
	for _, u := range all { // in the order of preference
		t.row(u.Interface, map[bool]string{true: "up", false: "down"}[u.Up], u.Router, u.Locator, u.Mtu)
	}
	for _, u := range all {
		if u.Tunnel != "" {
			t.row()
			t.row(u.Interface, u.Tunnel)
		}
	}
}
