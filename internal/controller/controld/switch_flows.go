package controld

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
)

// maxSwitchFlows is how many flows of operators one network keeps.
const maxSwitchFlows = 65536

// maxFlowText bounds what a flow matches, and does, in bytes. The store would refuse a record of a megabyte, and with it
// everything else, for ever.
const maxFlowText = 1024

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
	err := a.n.orders.Do(ctx, func() (orders.Change, error) {
		key := switchFlowKey{f.Switch, f.Number}
		if req.Msg.Gone {
			return orders.Change{Records: []store.Change{store.DeleteSwitchFlow(f.Switch, f.Number)}, Effect: func() { delete(a.n.switchFlows, key) }, Says: []*apiv1.Event{a.n.flowEvent(key, store.SwitchFlow{})}}, nil
		}
		if _, known := a.n.switchFlows[key]; !known && len(a.n.switchFlows) >= maxSwitchFlows {
			return orders.Change{}, fmt.Errorf("%w: at most %d flows of operators are kept: remove some", orders.ErrConflict, maxSwitchFlows)
		}
		return orders.Change{Records: []store.Change{store.PutSwitchFlow(f)}, Effect: func() { a.n.switchFlows[key] = f }, Says: []*apiv1.Event{a.n.flowEvent(key, f)}}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(new(apiv1.KeepFlowResponse)), nil
}

// flowEvent is of a flow of an operator's that is kept or forgotten.
func (n *network) flowEvent(key switchFlowKey, now store.SwitchFlow) *apiv1.Event {
	before, text := n.switchFlows[key], "an operator's flow is kept"
	if now.Switch == "" {
		text = "an operator's flow is forgotten"
	}
	return events.Changed(events.New("switch.flow", key.at, text, "number", events.Number(key.number)),
		&apiv1.FieldChange{Field: "match", From: before.Match, To: now.Match}, &apiv1.FieldChange{Field: "actions", From: before.Actions, To: now.Actions})
}

func checkFlow(f store.SwitchFlow) error {
	if name, err := names.Clean(f.Switch, ""); err != nil || name != f.Switch {
		return fmt.Errorf("switch name %.80q: want letters, digits and hyphens, in lower case", f.Switch)
	}
	if n := max(len(f.Match), len(f.Actions)); n > maxFlowText {
		return fmt.Errorf("a flow with a text of %d bytes: at most %d", n, maxFlowText)
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
