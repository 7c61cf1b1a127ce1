package members

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/views"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// hostStatus asks a host's own daemon: what the controller knows of it is `host show`.
func hostStatus(a remote.Admin) *cobra.Command {
	f := &remote.HostDaemons{Admin: a}
	var counters bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how this host, or a lab's, stands: its uplinks, and why it is not in the network",
		Example: `  scaffold host status
  scaffold host status --lab web --host c1 --counters`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&f.Host, "host", "", "only this host of the lab")
	command.Exclusive(cmd, "api host")
	cmd.Flags().BoolVar(&counters, "counters", false, "also what its edge counts: packets that it dropped, by reason, and more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return f.Each(func(client apiv1connect.LocalClient, node remote.NodeSocket) error {
			s, err := remote.Ask(cmd.Context(), client.GetHostStatus, &apiv1.GetHostStatusRequest{}, node.Path, "")
			if err != nil {
				return err
			}
			if a.JSON() {
				return output.WriteJSON(cmd.OutOrStdout(), s, "  ")
			}
			return drawHostStatus(cmd.OutOrStdout(), s, counters)
		})
	}
	return cmd
}

func drawHostStatus(w io.Writer, s *apiv1.HostStatus, counters bool) error {
	err := output.Draw(w, func(t *output.Table) {
		t.Row("host", s.Name)
		t.Row("state", s.State)
		if s.Reason != "" {
			t.Row("why", s.Reason)
		}
		t.Row("network", s.Network)
		if s.Trust != "" { // it was told by the controller
			t.Row("trust", views.Trust(s.Trust))
		}
		t.Row("identity", s.Identity)
		t.Row("controller", s.Controller)
		t.Row("flows", s.Flows)
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	err = output.Draw(w, func(t *output.Table) { drawUplinks(t, s.Uplinks) })
	if err == nil {
		err = drawPermits(w, s)
	}
	if err != nil || !counters {
		return err
	}
	fmt.Fprintln(w)
	return output.Draw(w, func(t *output.Table) {
		for _, name := range output.Sorted(s.Counters) {
			t.Row(name, s.Counters[name])
		}
	})
}

// drawPermits shows what the host may serve by permit, and what it would serve and may not.
func drawPermits(w io.Writer, s *apiv1.HostStatus) error {
	if len(s.Permits) > 0 {
		fmt.Fprintln(w)
		err := output.Draw(w, func(t *output.Table) {
			t.Row("PERMIT FOR", "UNTIL", "FROM", "TROUBLE")
			for _, p := range s.Permits {
				until := "-"
				if p.NotAfterUnix != 0 {
					until = time.Unix(p.NotAfterUnix, 0).UTC().Format(time.RFC3339)
				}
				t.Row(output.OrElse(p.Service, "-"), until, p.From, p.Trouble)
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
	return output.Draw(w, func(t *output.Table) {
		t.Row("REFUSED", "PORT", "WHY")
		for _, g := range s.Refused {
			t.Row(g.Service, fmt.Sprintf("%s/%d", g.Proto, g.Port), g.Reason)
		}
	})
}

func drawUplinks(t *output.Table, all []*apiv1.Uplink) {
	t.Row("UPLINK", "LINK", "ROUTER", "LOCATOR", "MTU")
	for _, u := range all { // in the order of preference
		t.Row(u.Interface, map[bool]string{true: "up", false: "down"}[u.Up], u.Router, u.Locator, u.Mtu)
	}
	for _, u := range all {
		if u.Tunnel != "" {
			t.Row()
			t.Row(u.Interface, u.Tunnel)
		}
	}
}
