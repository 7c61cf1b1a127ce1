package cli

import (
	"context"
	"errors"
	"regexp"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const aboutExplain = `Explain tells the biography of a flow: which instance it got and why, each move of either end, each
failover, each stall of more than 10 ms and its cause; or, of a service, why its flows go where they go
and what happened to it lately.

A flow is named by its socketID, a former one of it, its stable identifier, or the address and port
that a program sees, as in [fd5e::1]:40000. A service is named by its name, serviceID or address.`

func explainCommand() *cobra.Command {
	var f *flows
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
			if f.json() {
				return writeTold(cmd.OutOrStdout(), told)
			}
			return drawTold(cmd.OutOrStdout(), told)
		},
	}
	f = &flows{admin: addAdmin(cmd)}
	cmd.Flags().StringVar(&f.host, "host", "", "only what this host of the lab knows of the flow")
	return cmd
}

// told is all that is known: of a flow what its ends in reach know, and of its service.
type told struct {
	flows   []*apiv1.FlowStory
	service *apiv1.ServiceStory
}

func (f *flows) explain(ctx context.Context, what string) (told, error) {
	if namesFlow(what) {
		stories, err := f.stories(ctx, what)
		if err != nil || len(stories) > 0 {
			return told{stories, f.storyOf(ctx, stories)}, err
		}
	}
	service, err := f.serviceStory(ctx, what)
	if isNotFound(err) && namesFlow(what) {
		err = failf(ExitNotFound, hintListing(listFlows), "no flow, live or of late, and no service is %q", what)
	}
	return told{service: service}, err
}

var socketID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// namesFlow says whether it may be a flow: a socketID, or an address with or without a port.
func namesFlow(s string) bool {
	return socketID.MatchString(s) || checkAddress(s) == nil
}

// stories asks the hosts in reach; a flow is known at its ends, and each end tells its own side.
func (f *flows) stories(ctx context.Context, flow string) (all []*apiv1.FlowStory, err error) {
	err = f.each(func(client apiv1connect.LocalClient, node nodeSocket) error {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		story, err := client.Biography(ctx, connect.NewRequest(&apiv1.BiographyRequest{Flow: flow}))
		switch connect.CodeOf(err) {
		case connect.CodeNotFound, connect.CodeInvalidArgument: // not its flow; or it may name a service
			return nil
		}
		if err != nil {
			return explain(err, node.path, listFlows)
		}
		if story.Msg.Flow == nil {
			story.Msg.Flow = &apiv1.Flow{}
		}
		story.Msg.Flow.Host = orElse(story.Msg.Flow.Host, node.node)
		all = append(all, story.Msg)
		return nil
	})
	return all, err
}

// storyOf is that of the flow's service. A controller that is away or older takes nothing from the
// flow's own story.
func (f *flows) storyOf(ctx context.Context, stories []*apiv1.FlowStory) *apiv1.ServiceStory {
	for _, s := range stories {
		if s.Flow.Service != "" {
			service, _ := f.serviceStory(ctx, s.Flow.Service)
			return service
		}
	}
	return nil
}

func (f *flows) serviceStory(ctx context.Context, name string) (*apiv1.ServiceStory, error) {
	client, endpoint, err := f.dialAdmin()
	if err != nil {
		return nil, err
	}
	return ask(ctx, client.Explain, &apiv1.ExplainRequest{Name: name}, endpoint, listServices)
}

func isNotFound(err error) bool {
	var known *exitError
	return errors.As(err, &known) && known.code == ExitNotFound
}
