package service

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/views"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// Command is `scaffold service`.
func Command() *cobra.Command {
	cmd := command.Group("service", "Create services, look at them and steer their traffic")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(serviceCreate(a), serviceList(a), serviceShow(a), serviceWeight(a),
		serviceDrain(a), serviceUndrain(a), servicePolicy(a), serviceRemove(a),
		serviceAccess(a), command.Alone(serviceKeygen()), command.Plain(serviceDelegate(a)))
	return cmd
}

// change runs one call that returns the service as it is now, and prints it.
func change(a remote.Admin, cmd *cobra.Command, call func(context.Context, apiv1connect.AdminClient, string) (*apiv1.Service, error)) error {
	client, endpoint, err := a.DialAdmin()
	if err != nil {
		return err
	}
	service, err := call(cmd.Context(), client, endpoint)
	return answered(a, cmd, service, err)
}

// answered prints the service as it is after an order, and what the controller says of it besides.
func answered(a remote.Admin, cmd *cobra.Command, service *apiv1.Service, err error) error {
	if err != nil {
		return err
	}
	if len(service.Pending) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: saved, and not applied yet by %s: `scaffold router ls` shows whether they are connected\n", strings.Join(service.Pending, ", "))
	}
	for _, text := range service.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", text)
	}
	return showService(a, cmd.OutOrStdout(), service)
}

func showService(a remote.Admin, w io.Writer, s *apiv1.Service) error {
	if a.JSON() {
		return output.WriteJSON(w, s, "  ")
	}
	if err := output.Draw(w, func(t *output.Table) { drawService(t, s) }); err != nil || len(s.Instances) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return output.Draw(w, func(t *output.Table) { views.Instances(t, s.Instances) })
}

func drawService(t *output.Table, s *apiv1.Service) {
	t.Row("service", s.Name)
	t.Row("serviceID", s.Sid)
	t.Row("address", s.Address)
	p := s.GetPolicy()
	t.Row("policy", fmt.Sprintf("failover %s, drain %s, datagrams %s", output.OrElse(p.GetFailover(), "reset"), output.OrElse(p.GetDrain(), "wait"), output.OrElse(p.GetDatagrams(), "bound")))
	if p.GetPatienceMs() != 0 {
		t.Row("patience", time.Duration(p.GetPatienceMs())*time.Millisecond)
	}
	t.Row("ready", output.OrElse(p.GetReady(), "when it listens"))
	t.Row("weight", fmt.Sprintf("%d where none is set", weightOf(p)))
	if p.GetDscp() != 0 {
		t.Row("dscp", p.GetDscp())
	}
	if p.GetBoost() {
		t.Row("boost", "from sites where nobody serves it")
	}
	drawAccess(t, s)
	t.Row("created", output.Ago(s.CreatedUnixMs))
}

func weightOf(p *apiv1.Policy) uint32 {
	if p.GetWeight() == 0 {
		return 100
	}
	return p.GetWeight()
}
