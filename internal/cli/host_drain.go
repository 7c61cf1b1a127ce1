package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const aboutHostDrain = `Drain takes everything that a host serves out of service, as before a reboot. Each service's live flows
wait or are shed as "scaffold service drain --help" says: by --mode, or by the service's policy.
Flows that the host's programs opened themselves are not touched.

With --dry-run nothing changes: the table says what would happen, and the command ends with 7 where
clients would notice something. Draining the last instance of a service needs --force.`

func hostDrain(a admin) *cobra.Command {
	req := &apiv1.DrainHostRequest{}
	var follow bool
	cmd := &cobra.Command{
		Use:   "drain HOST",
		Short: "Take all that a host serves out of service",
		Long:  aboutHostDrain,
		Example: `  scaffold host drain s1 --dry-run
  scaffold host drain s1 --mode shed --follow`,
		Args: cobra.ExactArgs(1),
	}
	addMode(cmd, &req.Mode)
	cmd.Flags().BoolVar(&req.DryRun, "dry-run", false, "only say what it would do to whom")
	cmd.Flags().BoolVar(&req.Force, "force", false, "also where it is the last instance that serves")
	cmd.Flags().BoolVar(&follow, "follow", false, "show how many flows are left, until none is")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req.Host = args[0]
		if err := checkMode(req.Mode); err != nil {
			return err
		}
		return a.drainHost(cmd, req, follow && !req.DryRun)
	}
	return cmd
}

func hostUndrain(a admin) *cobra.Command {
	return &cobra.Command{
		Use:     "undrain HOST",
		Short:   "Give all services of a drained host new flows again",
		Example: "  scaffold host undrain s1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.drainHost(cmd, &apiv1.DrainHostRequest{Host: args[0], Undrain: true}, false)
		},
	}
}

func (a admin) drainHost(cmd *cobra.Command, req *apiv1.DrainHostRequest, watch bool) error {
	client, endpoint, err := a.dialAdmin()
	if err != nil {
		return err
	}
	done, err := ask(cmd.Context(), client.DrainHost, req, endpoint, listHosts)
	if err != nil {
		return err
	}
	if err := a.print(cmd.OutOrStdout(), done, func(t *table) { drawDrained(t, req, done) }); err != nil {
		return err
	}
	if watch {
		return follow(cmd, req.Host, func(ctx context.Context) (uint32, error) {
			return hostLeft(ctx, client, endpoint, req.Host)
		})
	}
	if breaks := breaking(done); req.DryRun && breaks > 0 {
		return failf(ExitUnmet, "", "clients of %s would notice", count(breaks, "service"))
	}
	return nil
}

func drawDrained(t *table, req *apiv1.DrainHostRequest, done *apiv1.DrainHostResponse) {
	if len(done.Services) == 0 {
		t.row(req.Host + " serves nothing")
		return
	}
	if req.Undrain {
		t.row("SERVICE", "FLOWS", "OTHER INSTANCES")
		for _, s := range done.Services {
			t.row(s.Service, s.Flows, s.Others)
		}
		return
	}
	t.row("SERVICE", "MODE", "FLOWS", "OTHER INSTANCES", "WHAT CLIENTS NOTICE")
	for _, s := range done.Services {
		t.row(s.Service, s.Mode, s.Flows, s.Others, cmp.Or(s.Breaks, "nothing"))
	}
	if done.Flows > 0 {
		t.row(fmt.Sprintf("%s of its own programs not touched", count(done.Flows, "flow")))
	}
}

func breaking(done *apiv1.DrainHostResponse) (n uint32) {
	for _, s := range done.Services {
		if s.Breaks != "" {
			n++
		}
	}
	return n
}

// hostLeft counts the flows of all instances on a host.
func hostLeft(ctx context.Context, client apiv1connect.AdminClient, endpoint, host string) (flows uint32, err error) {
	h, err := ask(ctx, client.GetHost, &apiv1.GetHostRequest{Name: host}, endpoint, listHosts)
	if err != nil {
		return 0, err
	}
	for _, i := range h.Instances {
		flows += i.Flows
	}
	return flows, nil
}
