package controld

import (
	"context"
	"fmt"
	"net/netip"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/places"
	"scaffold.dev/scaffold/internal/controller/controld/tunnels"
	"scaffold.dev/scaffold/internal/trust"
)

// Tunnel tells a host who offers tunnels, or gives it one.
func (a *agentAPI) Tunnel(ctx context.Context, req *connect.Request[apiv1.TunnelRequest]) (*connect.Response[apiv1.TunnelResponse], error) {
	m := req.Msg
	if err := tunnels.Check(m); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := gate.Itself(gate.PeerOf(ctx), trust.Host, m.Host, m.Key); a.n.members.Key() != nil && err != nil {
		return nil, connect.NewError(connect.CodePermissionDenied, err)
	}
	seen := req.Peer().Addr
	if req.Header().Get(gate.HandedOn) != "" && gate.PeerOf(ctx).Handed {
		seen = req.Header().Get(gate.SeenAt)
	}
	if at, err := netip.ParseAddrPort(seen); err == nil {
		seen = at.Addr().Unmap().WithZone("").String()
	}
	answer := &apiv1.TunnelResponse{Seen: seen, Trust: a.n.cfg.Trust}
	var t *tunnels.Tunnel
	var wait *tunnels.Wait
	_, err := get(ctx, a.n, func() (_ *apiv1.TunnelResponse, err error) {
		if a.n.members.Key() != nil {
			if err := a.n.tunnels.Proves(m); err != nil {
				return nil, connect.NewError(connect.CodePermissionDenied, err)
			}
		}
		switch {
		case m.Gone:
			a.n.tunnels.Forsake(m.Host, m.Uplink)
		case m.Router == "":
			answer.Offers = a.n.tunnels.Offers()
		default:
			t, wait, err = a.n.tunnels.For(m)
		}
		return answer, err
	})
	if err != nil || wait == nil {
		return connect.NewResponse(answer), err
	}
	if err := wait.Over(ctx); err != nil {
		a.n.loop.Post(func() { a.n.tunnels.GiveUp(wait) })
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("router %s has not made its end of the tunnel within %v", m.Router, tunnels.Patience))
	}
	return get(ctx, a.n, func() (*apiv1.TunnelResponse, error) {
		made, err := a.n.tunnels.Answer(t)
		if err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
		answer.Number, answer.LinkLocal = t.Number, made.LinkLocal
		return answer, nil
	})
}

// tunnelEnds is what tunnels need to know of the network.
type tunnelEnds struct{ n *network }

// Connected reports whether a router is here.
func (e tunnelEnds) Connected(router string) bool {
	return e.n.routers.Here(router)
}

// Order tells a router that is here what it is to have.
func (e tunnelEnds) Order(router string, has *apiv1.Tunnels) {
	e.n.routers.Order(router, &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Tunnels{Tunnels: has}})
}

// Key is that of a host.
func (e tunnelEnds) Key(host string) []byte {
	if h := e.n.hosts[host]; h != nil {
		return h.Key
	}
	return nil
}

// Attached is where hosts are.
func (e tunnelEnds) Attached() map[tunnels.Port]bool {
	at := make(map[tunnels.Port]bool)
	e.n.places.Each(func(p places.Attachment) { at[tunnels.Port{Router: p.Router, Name: p.Port}] = true })
	return at
}
