package controld

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/store"
)

// maxSwitchFlows is how many flows of operators one network keeps.
const maxSwitchFlows = 65536

type switchFlowKey struct {
	at     string
	number uint32
}

// KeepFlow saves an operator's flow for a switch. What it means is not looked at here: whoever drives the
// switches has, and asks for it again when it starts.
func (a *agentAPI) KeepFlow(ctx context.Context, req *connect.Request[apiv1.KeptFlow]) (*connect.Response[apiv1.KeepFlowResponse], error) {
	f := storedFlow(req.Msg)
	if err := checkFlow(f); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	err := a.orders.do(ctx, func() (change, error) {
		key := switchFlowKey{f.Switch, f.Number}
		if req.Msg.Gone {
			return change{[]store.Change{store.DeleteSwitchFlow(f.Switch, f.Number)}, func() { delete(a.n.switchFlows, key) }}, nil
		}
		if _, known := a.n.switchFlows[key]; !known && len(a.n.switchFlows) >= maxSwitchFlows {
			return change{}, fmt.Errorf("%w: at most %d flows of operators are kept: remove some", errConflict, maxSwitchFlows)
		}
		return change{[]store.Change{store.PutSwitchFlow(f)}, func() { a.n.switchFlows[key] = f }}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(new(apiv1.KeepFlowResponse)), nil
}

func checkFlow(f store.SwitchFlow) error {
	if name, err := names.Clean(f.Switch, ""); err != nil || name != f.Switch {
		return fmt.Errorf("switch name %.80q: want letters, digits and hyphens, in lower case", f.Switch)
	}
	if n := max(len(f.Match), len(f.Actions)); n > maxReason {
		return fmt.Errorf("a flow with a text of %d bytes: at most %d", n, maxReason)
	}
	return nil
}

// KeptFlows are all flows of operators, by switch and number.
func (a *agentAPI) KeptFlows(ctx context.Context, _ *connect.Request[apiv1.KeptFlowsRequest]) (*connect.Response[apiv1.KeptFlowsResponse], error) {
	return get(ctx, a.n, func() (*apiv1.KeptFlowsResponse, error) {
		keys := slices.SortedFunc(maps.Keys(a.n.switchFlows), func(x, y switchFlowKey) int {
			return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.number, y.number))
		})
		list := new(apiv1.KeptFlowsResponse)
		for _, k := range keys {
			f := a.n.switchFlows[k]
			list.Flows = append(list.Flows, &apiv1.KeptFlow{
				Switch: f.Switch, Number: f.Number, Match: f.Match, Actions: f.Actions, Priority: f.Priority, First: f.First,
			})
		}
		return list, nil
	})
}

func storedFlow(f *apiv1.KeptFlow) store.SwitchFlow {
	return store.SwitchFlow{Switch: f.Switch, Number: f.Number, Match: f.Match, Actions: f.Actions, Priority: f.Priority, First: f.First}
}
