package controld

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// resolveTTL is how long an answer may be remembered: a name keeps its address for life, so this
// bounds only how long a removed service is still asked for.
const resolveTTL = 10

// Resolve answers hosts' DNS: by name, with or without the domain, or by address.
func (a *agentAPI) Resolve(ctx context.Context, req *connect.Request[apiv1.ResolveRequest]) (*connect.Response[apiv1.ResolveResponse], error) {
	var answer *apiv1.ResolveResponse
	var err error
	asked := a.n.ask(ctx, func() {
		if req.Msg.Address != "" {
			answer, err = a.n.byAddress(req.Msg.Address)
		} else {
			answer, err = a.n.byName(req.Msg.Name)
		}
	})
	if asked != nil {
		return nil, asked
	}
	if err != nil {
		return nil, apiError(err)
	}
	return connect.NewResponse(answer), nil
}

func (n *network) byName(name string) (*apiv1.ResolveResponse, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	r, err := n.names.Named(strings.TrimSuffix(name, "."+n.cfg.Domain))
	if err != nil {
		return nil, err
	}
	return n.resolved(r), nil
}

func (n *network) resolved(r names.Record) *apiv1.ResolveResponse {
	return &apiv1.ResolveResponse{
		Name: r.Name, Sid: r.ID.String(), Address: n.cfg.Space.ServiceAddr(r.ID).String(),
		TtlSeconds: resolveTTL, Policy: apiPolicy(r.Policy),
	}
}

// byAddress names a service by its address, or a host by its identity or any address of its locator;
// only services have a serviceID in the answer.
func (n *network) byAddress(text string) (*apiv1.ResolveResponse, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return nil, fmt.Errorf("%w: address %.60q", names.ErrInvalid, text)
	}
	if id, ok := n.cfg.Space.ServiceOf(addr); ok {
		if r, ok := n.names.ByID(id); ok {
			return n.resolved(r), nil
		}
		return nil, fmt.Errorf("%v: %w", addr, names.ErrUnknown)
	}
	if h := n.hostAt(addr); h != nil {
		return &apiv1.ResolveResponse{Name: h.Name, Address: addr.String(), TtlSeconds: resolveTTL}, nil
	}
	return nil, fmt.Errorf("%v: %w nor host", addr, names.ErrUnknown)
}

func (n *network) hostAt(addr netip.Addr) *host {
	if n.cfg.Space.Identities.Contains(addr) {
		return n.identityOwner(sid.Low(addr))
	}
	if at := n.places[sid.LocatorOf(addr)]; at != nil {
		return at.host
	}
	return nil
}

// Others tells a client's host whether a flow has anybody else to turn to.
func (a *agentAPI) Others(ctx context.Context, req *connect.Request[apiv1.OthersRequest]) (*connect.Response[apiv1.OthersResponse], error) {
	m, answer := req.Msg, new(apiv1.OthersResponse)
	t := sid.Triple{Service: sid.ServiceID{SS: m.Ss, Suffix: sid.Suffix(m.Suffix)}, Proto: sid.Proto(m.Proto), Port: uint16(m.Port)}
	settled := false
	err := a.n.ask(ctx, func() {
		settled = a.n.grace == nil                             // else many have not told yet what they serve
		besides := a.n.quarantine[sid.Locator(m.Besides)].host // that went from there
		if at := a.n.places[sid.Locator(m.Besides)]; at != nil {
			besides = at.host.Name
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
