package flow

import (
	"context"
	"errors"
	"regexp"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
)

const aboutExplain = `Explain tells the history of a flow: which instance it got and why, each move of either end, each
failover, each stall of more than 10 ms and its cause; or, of a service, why its flows go where they go
and what happened to it lately.

A flow is named by its socketID, a former one of it, its stable identifier, or the address and port
that a program sees, as in [fd5e::1]:40000. A service is named by its name, serviceID or address.`

// ExplainCommand is `scaffold explain`.
func ExplainCommand() *cobra.Command {
	var f flows
	cmd := &cobra.Command{
		Use:   "explain FLOW|SERVICE",
		Short: "Tell what happened to a flow or a service, and why",
		Long:  aboutExplain,
		Example: `  scaffold explain 9f3c1b2a44d0e871
  scaffold explain [fd5e::9f3c]:40000
  scaffold explain web
  scaffold explain --lab web --host c1 fd5d:0:1:101:9f3c:1b2a:44d0:e871`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			told, err := f.explain(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if f.JSON() {
				return writeTold(cmd.OutOrStdout(), told)
			}
			return drawTold(cmd.OutOrStdout(), told)
		},
	}
	f = flows{&remote.HostDaemons{Admin: remote.AddAdmin(cmd)}}
	cmd.Flags().StringVar(&f.Host, "host", "", "only what this host of the lab knows of the flow")
	command.Exclusive(cmd, "api host")
	return cmd
}

// told is all that is known: of a flow what its ends in reach know, and of its service.
type told struct {
	flows   []*apiv1.FlowHistory
	service *apiv1.ServiceExplanation
}

func (f flows) explain(ctx context.Context, what string) (told, error) {
	if namesFlow(what) {
		histories, err := f.histories(ctx, what)
		if err != nil || len(histories) > 0 {
			return told{histories, f.serviceOf(ctx, histories)}, err
		}
	}
	service, err := f.explainService(ctx, what)
	if isNotFound(err) && namesFlow(what) {
		err = exit.Failf(exit.NotFound, remote.HintListing(listFlows), "no flow, live or of late, and no service is %q", what)
	}
	return told{service: service}, err
}

var socketID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// namesFlow says whether it may be a flow: a socketID, or an address with or without a port.
func namesFlow(s string) bool {
	return socketID.MatchString(s) || checkAddress(s) == nil
}

// historyFrom asks one daemon; one of the version before, which runs on while its machine is upgraded, by the former name.
func historyFrom(ctx context.Context, client apiv1connect.LocalClient, node remote.NodeSocket, flow string) (*connect.Response[apiv1.FlowHistory], error) {
	ask := connect.NewRequest(&apiv1.GetFlowHistoryRequest{Flow: flow})
	history, err := client.GetFlowHistory(ctx, ask)
	if connect.CodeOf(err) != connect.CodeUnimplemented {
		return history, err
	}
	http, base, err := api.Dial(node.Path)
	if err != nil {
		return nil, err
	}
	former := connect.NewClient[apiv1.GetFlowHistoryRequest, apiv1.FlowHistory](http, base+api.FormerFlowHistory)
	return former.CallUnary(ctx, connect.NewRequest(ask.Msg))
}

// histories asks the hosts in reach; a flow is known at its ends, and each end tells its own side.
func (f flows) histories(ctx context.Context, flow string) (all []*apiv1.FlowHistory, err error) {
	err = f.Each(func(client apiv1connect.LocalClient, node remote.NodeSocket) error {
		ctx, cancel := context.WithTimeout(ctx, remote.AnswerTime)
		defer cancel()
		history, err := historyFrom(ctx, client, node, flow)
		switch connect.CodeOf(err) {
		case connect.CodeNotFound, connect.CodeInvalidArgument: // not its flow; or it may name a service
			return nil
		}
		if err != nil {
			return remote.Explain(err, node.Path, listFlows)
		}
		if history.Msg.Flow == nil {
			history.Msg.Flow = &apiv1.Flow{}
		}
		history.Msg.Flow.Host = output.OrElse(history.Msg.Flow.Host, node.Node)
		all = append(all, history.Msg)
		return nil
	})
	return all, err
}

// serviceOf explains the flow's service. A controller that is away or older takes nothing from the flow's own
// history.
func (f flows) serviceOf(ctx context.Context, histories []*apiv1.FlowHistory) *apiv1.ServiceExplanation {
	for _, s := range histories {
		if s.Flow.Service != "" {
			service, _ := f.explainService(ctx, s.Flow.Service)
			return service
		}
	}
	return nil
}

func (f flows) explainService(ctx context.Context, name string) (*apiv1.ServiceExplanation, error) {
	client, endpoint, err := f.DialAdmin()
	if err != nil {
		return nil, err
	}
	return remote.Ask(ctx, client.Explain, &apiv1.ExplainRequest{Name: name}, endpoint, remote.ListServices)
}

func isNotFound(err error) bool {
	var known *exit.Error
	return errors.As(err, &known) && known.Code == exit.NotFound
}
