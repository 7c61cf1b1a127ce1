package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const listServices = "scaffold service ls"

// admin is what every command over the Admin API has: where to ask and how to print.
type admin struct {
	*remote
	*output
}

func addAdmin(cmd *cobra.Command) admin {
	return admin{addRemote(cmd.PersistentFlags()), addOutput(cmd.PersistentFlags())}
}

func serviceCommand() *cobra.Command {
	cmd := group("service", "Create services, look at them and steer their traffic")
	a := addAdmin(cmd)
	cmd.AddCommand(serviceCreate(a), serviceList(a), serviceShow(a), serviceWeight(a),
		serviceDrain(a), serviceUndrain(a), servicePolicy(a), serviceRemove(a),
		serviceAccess(a), serviceKeygen(), serviceDelegate(a))
	return cmd
}

// change runs one call that returns the service as it is now, and prints it.
func (a admin) change(cmd *cobra.Command, call func(context.Context, apiv1connect.AdminClient, string) (*apiv1.Service, error)) error {
	client, endpoint, err := a.dialAdmin()
	if err != nil {
		return err
	}
	service, err := call(cmd.Context(), client, endpoint)
	if err != nil {
		return err
	}
	if len(service.Pending) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: saved, and not applied yet by %s: `scaffold router ls` shows whether they are connected\n", strings.Join(service.Pending, ", "))
	}
	return a.showService(cmd.OutOrStdout(), service)
}

func (a admin) showService(w io.Writer, s *apiv1.Service) error {
	if a.json() {
		return writeJSON(w, s, "  ")
	}
	if err := drawTable(w, func(t *table) { drawService(t, s) }); err != nil || len(s.Instances) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return drawTable(w, func(t *table) { drawInstances(t, s.Instances) })
}

func drawService(t *table, s *apiv1.Service) {
	t.row("service", s.Name)
	t.row("serviceID", s.Sid)
	t.row("address", s.Address)
	p := s.GetPolicy()
	t.row("policy", fmt.Sprintf("failover %s, drain %s, datagrams %s", orElse(p.GetFailover(), "reset"), orElse(p.GetDrain(), "wait"), orElse(p.GetDatagrams(), "bound")))
	if p.GetPatienceMs() != 0 {
		t.row("patience", time.Duration(p.GetPatienceMs())*time.Millisecond)
	}
	t.row("ready", orElse(p.GetReady(), "when it listens"))
	t.row("weight", fmt.Sprintf("%d where none is set", weightOf(p)))
	if p.GetDscp() != 0 {
		t.row("dscp", p.GetDscp())
	}
	drawAccess(t, s)
	t.row("created", ago(s.CreatedUnixMs))
}

func drawInstances(t *table, instances []*apiv1.Instance) {
	t.row("HOST", "LOCATOR", "PORT", "WEIGHT", "EFFECTIVE", "STATE", "FLOWS", "QUEUE", "SINCE", "WHY")
	for _, i := range instances {
		t.row(i.Host, i.Locator, fmt.Sprintf("%s/%d", i.Proto, i.Port), i.Weight, i.Effective, i.State, i.Flows, i.AcceptQueue, age(i.SinceUnixMs), i.Reason)
	}
}

func weightOf(p *apiv1.Policy) uint32 {
	if p.GetWeight() == 0 {
		return 100
	}
	return p.GetWeight()
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func ago(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return age(unixMS) + " ago"
}
