package controld

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
)

// Resolve answers hosts' DNS: by name, with or without the domain, or by address.
func (a *agentAPI) Resolve(ctx context.Context, req *connect.Request[apiv1.ResolveRequest]) (*connect.Response[apiv1.ResolveResponse], error) {
	return get(ctx, a.n, func() (*apiv1.ResolveResponse, error) {
		if req.Msg.Address != "" {
			return a.n.services.ByAddress(req.Msg.Address)
		}
		return a.n.services.ByName(req.Msg.Name)
	})
}

// Others tells a client's host whether a flow has anybody else to turn to.
func (a *agentAPI) Others(ctx context.Context, req *connect.Request[apiv1.OthersRequest]) (*connect.Response[apiv1.OthersResponse], error) {
	m, answer := req.Msg, new(apiv1.OthersResponse)
	t := sid.Triple{Service: sid.ServiceID{SS: m.Ss, Suffix: sid.Suffix(m.Suffix)}, Proto: sid.Proto(m.Proto), Port: uint16(m.Port)}
	settled := false
	err := a.n.ask(ctx, func() {
		settled = !a.n.grace.Settling()                         // else many have not told yet what they serve
		besides, _ := a.n.locators.Held(sid.Locator(m.Besides)) // that went from there
		if at, here := a.n.places.At(sid.Locator(m.Besides)); here {
			besides = at.Host
		}
		_, answer.There = a.n.plan.Takers(t, besides)
	})
	switch {
	case err != nil:
		return nil, err
	case !settled:
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("the controller has just started: not all hosts have reported yet"))
	}
	return connect.NewResponse(answer), nil
}
