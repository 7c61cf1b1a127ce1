package gateway

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/host/gateway"
)

// explainGateway gives what can go wrong at the start its exit code.
func explainGateway(err error) error {
	switch {
	case errors.Is(err, api.ErrRunning):
		return exit.Fail(exit.Refused, "--takeover takes its place; --socket names another one for a second gateway", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return exit.Fail(exit.Refused, "", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return exit.Fail(exit.NotFound, "`ip address` lists this host's addresses", err)
	}
	return err
}

// gatewayAsk is a question to the gateway of a socket.
type gatewayAsk struct {
	socket string
	out    *output.Flag
}

func newGatewayAsk(use, short, example string, run func(context.Context, *gatewayAsk, apiv1connect.GatewayClient, *cobra.Command) error) *cobra.Command {
	a := &gatewayAsk{}
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, base, err := api.Dial("unix:" + a.socket)
			if err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			return run(cmd.Context(), a, apiv1connect.NewGatewayClient(client, base), cmd)
		},
	}
	cmd.Flags().StringVar(&a.socket, "socket", gateway.DefaultSocket, "Unix socket of the gateway")
	a.out = output.Add(cmd.Flags())
	return cmd
}

func (a *gatewayAsk) status(ctx context.Context, c apiv1connect.GatewayClient) (*apiv1.GatewayStatus, error) {
	return remote.Ask(ctx, c.GetGateway, &apiv1.GetGatewayRequest{}, a.socket, "")
}

func (a *gatewayAsk) print(cmd *cobra.Command, s *apiv1.GatewayStatus) error {
	if err := a.out.Print(cmd.OutOrStdout(), s, func(t *output.Table) {
		t.Row("LISTENER", "SERVICE", "OPEN", "FLOWS", "ACCEPTED", "REFUSED", "FAILED", "RETRIED", "BROKEN", "TROUBLE")
		for _, l := range s.Listeners {
			t.Row(l.At, l.To, map[bool]string{true: "yes", false: "no"}[l.Open], l.Flows, l.Accepted, l.Refused, l.Failed, l.Retried, l.Broken, l.Trouble)
		}
	}); err != nil || a.out.JSON() {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %d of at most %d flows, up %s\n", s.State, s.Flows, s.Room, output.Age(s.StartedUnixMs))
	return err
}

func gatewayStatus() *cobra.Command {
	return newGatewayAsk("status", "Show a gateway's listeners, and what became of those who came",
		"  scaffold gateway status\n  scaffold gateway status -o json",
		func(ctx context.Context, a *gatewayAsk, c apiv1connect.GatewayClient, cmd *cobra.Command) error {
			s, err := a.status(ctx, c)
			if err != nil {
				return err
			}
			return a.print(cmd, s)
		})
}

const aboutGatewayDrain = `Drain sends new flows elsewhere: /healthz says 503 at once, for whoever spreads clients over several gateways,
and after the gateway's --drain-wait its listeners close. Flows that are there go on, without a limit. The
gateway runs on, so "scaffold gateway undrain" takes it back; SIGTERM ends it.`

func gatewayDrain() *cobra.Command {
	var follow bool
	cmd := newGatewayAsk("drain", "Send new flows elsewhere",
		"  scaffold gateway drain\n  scaffold gateway drain --follow && systemctl stop scaffold-gateway",
		func(ctx context.Context, a *gatewayAsk, c apiv1connect.GatewayClient, cmd *cobra.Command) error {
			s, err := remote.Ask(ctx, c.DrainGateway, &apiv1.DrainGatewayRequest{}, a.socket, "")
			for err == nil && follow && (s.State == "leaving" || s.Flows > 0) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", s.State, command.Count(s.Flows, "flow"))
				select {
				case <-ctx.Done():
					return exit.Failf(exit.Failed, "the drain goes on: `scaffold gateway undrain` takes it back", "interrupted")
				case <-time.After(time.Second):
				}
				s, err = a.status(ctx, c)
			}
			if err != nil {
				return err
			}
			return a.print(cmd, s)
		})
	cmd.Long = aboutGatewayDrain
	cmd.Flags().BoolVar(&follow, "follow", false, "wait until no flow is left")
	return cmd
}

func gatewayUndrain() *cobra.Command {
	return newGatewayAsk("undrain", "Take flows again after a drain", "  scaffold gateway undrain",
		func(ctx context.Context, a *gatewayAsk, c apiv1connect.GatewayClient, cmd *cobra.Command) error {
			s, err := remote.Ask(ctx, c.DrainGateway, &apiv1.DrainGatewayRequest{Undrain: true}, a.socket, "")
			if err != nil {
				return err
			}
			return a.print(cmd, s)
		})
}

func gatewayReload() *cobra.Command {
	return newGatewayAsk("reload", "Read the gateway's --config again", "  scaffold gateway reload",
		func(ctx context.Context, a *gatewayAsk, c apiv1connect.GatewayClient, cmd *cobra.Command) error {
			s, err := remote.Ask(ctx, c.ReloadGateway, &apiv1.ReloadGatewayRequest{}, a.socket, "")
			if err != nil {
				return err
			}
			return a.print(cmd, s)
		})
}
