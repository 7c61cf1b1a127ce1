package members

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/draining"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const aboutHostDrain = `Drain takes everything that a host serves out of service, as before a reboot. Each service's live flows
wait or are shed as "scaffold service drain --help" says: by --mode, or by the service's policy.
Flows that the host's programs opened themselves are not touched.

With --dry-run nothing changes: the table says what would happen, and the command ends with 7 where
clients would notice something. Draining the last instance of a service needs --force.`

func hostDrain(a remote.Admin) *cobra.Command {
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
	draining.AddMode(cmd, &req.Mode)
	cmd.Flags().BoolVar(&req.DryRun, "dry-run", false, "only say what it would do to whom")
	cmd.Flags().BoolVar(&req.Force, "force", false, "also where it is the last instance that serves")
	cmd.Flags().BoolVar(&follow, "follow", false, "show how many flows are left, until none is")
	command.Exclusive(cmd, "dry-run follow", "dry-run force")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req.Host = args[0]
		if err := draining.CheckMode(req.Mode); err != nil {
			return err
		}
		return drainHost(a, cmd, req, follow)
	}
	return cmd
}

func hostUndrain(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:     "undrain HOST",
		Short:   "Give all services of a drained host new flows again",
		Example: "  scaffold host undrain s1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return drainHost(a, cmd, &apiv1.DrainHostRequest{Host: args[0], Undrain: true}, false)
		},
	}
}

func drainHost(a remote.Admin, cmd *cobra.Command, req *apiv1.DrainHostRequest, watch bool) error {
	client, endpoint, err := a.DialAdmin()
	if err != nil {
		return err
	}
	done, err := remote.Ask(cmd.Context(), client.DrainHost, req, endpoint, listHosts)
	if err != nil {
		return err
	}
	if err := a.Print(cmd.OutOrStdout(), done, func(t *output.Table) { drawDrained(t, req, done) }); err != nil {
		return err
	}
	if watch {
		return draining.Follow(cmd, req.Host, func(ctx context.Context) (uint32, error) {
			return hostLeft(ctx, client, endpoint, req.Host)
		})
	}
	if breaks := breaking(done); req.DryRun && breaks > 0 {
		return exit.Failf(exit.Unmet, "", "clients of %s would notice", command.Count(breaks, "service"))
	}
	return nil
}

func drawDrained(t *output.Table, req *apiv1.DrainHostRequest, done *apiv1.DrainHostResponse) {
	if len(done.Services) == 0 {
		t.Row(req.Host + map[bool]string{true: " is not drained", false: " serves nothing"}[req.Undrain] + ": nothing was changed")
		return
	}
	if req.Undrain {
		t.Row("SERVICE", "FLOWS", "OTHER INSTANCES")
		for _, s := range done.Services {
			t.Row(s.Service, s.Flows, s.Others)
		}
		return
	}
	t.Row("SERVICE", "MODE", "FLOWS", "OTHER INSTANCES", "WHAT CLIENTS NOTICE")
	for _, s := range done.Services {
		t.Row(s.Service, s.Mode, s.Flows, s.Others, cmp.Or(s.Breaks, "nothing"))
	}
	if done.Flows > 0 {
		t.Row(fmt.Sprintf("%s of its own programs %s left alone", command.Count(done.Flows, "flow"), was(done.Flows, req.DryRun)))
	}
}

// was is the verb of so many, of what happened or would.
func was(n uint32, would bool) string {
	switch {
	case would:
		return "would be"
	case n == 1:
		return "was"
	}
	return "were"
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
	h, err := remote.Ask(ctx, client.GetHost, &apiv1.GetHostRequest{Name: host}, endpoint, listHosts)
	if err != nil {
		return 0, err
	}
	for _, i := range h.Instances {
		flows += i.Flows
	}
	return flows, nil
}
