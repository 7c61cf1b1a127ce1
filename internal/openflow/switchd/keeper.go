package switchd

import (
	"context"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// A recordKeeper keeps operators' flows in the controller's store.
type recordKeeper struct{ agent apiv1connect.AgentClient }

func (k recordKeeper) keep(ctx context.Context, f keptFlow, gone bool) error {
	_, err := k.agent.KeepFlow(ctx, connect.NewRequest(&apiv1.KeptFlow{Switch: f.at, Number: f.number, Match: f.match,
		Actions: f.actions, Priority: uint32(f.priority), First: f.first, Gone: gone}))
	return err
}

func (k recordKeeper) kept(ctx context.Context) ([]keptFlow, error) {
	answer, err := k.agent.KeptFlows(ctx, connect.NewRequest(&apiv1.KeptFlowsRequest{}))
	if connect.CodeOf(err) == connect.CodeUnimplemented {
		return nil, nil // one that keeps none has none
	}
	if err != nil {
		return nil, err
	}
	var list []keptFlow
	for _, f := range answer.Msg.Flows {
		list = append(list, keptFlow{at: f.Switch, number: f.Number, match: f.Match, actions: f.Actions,
			priority: uint16(min(f.Priority, controller.MaxPriority)), first: f.First})
	}
	return list, nil
}
