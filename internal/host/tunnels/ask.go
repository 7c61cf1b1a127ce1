package tunnels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/host/underlay"
)

// How long the controller may take for an answer, a router to be heard through a new tunnel, and those that offer
// tunnels to show how far they are.
const (
	tunnelAnswer = 5 * time.Second
	tunnelHeard  = 3 * time.Second
	tunnelNear   = 300 * time.Millisecond
	// nearly is a difference of round trips that is none.
	nearly = 5 * time.Millisecond
)

// ask puts a request to the controller that leads, past all tunnels: by the underlay.
func (t *Tunnel) ask(ctx context.Context, r *apiv1.TunnelRequest) (answer *apiv1.TunnelResponse, err error) {
	best, _ := t.all.cfg.Controllers.Best()
	all := append([]string{best}, slices.DeleteFunc(t.all.cfg.Controllers.All(), func(e string) bool { return e == best })...)
	for _, endpoint := range all {
		if answer, err = t.askAt(ctx, endpoint, r); err == nil || connect.CodeOf(err) != connect.CodeUnavailable {
			break // else it is away, or another one leads
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the controller: %w", bare(err))
	}
	return answer, nil
}

func (t *Tunnel) askAt(ctx context.Context, endpoint string, r *apiv1.TunnelRequest) (*apiv1.TunnelResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, tunnelAnswer)
	defer cancel()
	who, err := t.all.cfg.TLS()
	if err != nil {
		return nil, err
	}
	client, base, err := api.DialAs(endpoint, who)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	r.Host, r.Uplink = t.all.cfg.Host, t.name
	api.SignTunnel(r, t.all.cfg.Key(), time.Now())
	answer, err := apiv1connect.NewAgentClient(client, base).Tunnel(ctx, connect.NewRequest(r))
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

// bare leaves out what only programs want to know of an error.
func bare(err error) error {
	var c *connect.Error
	if errors.As(err, &c) {
		return errors.New(c.Message())
	}
	return err
}

func (t *Tunnel) request(e *End) *apiv1.TunnelRequest {
	return &apiv1.TunnelRequest{Router: e.Router, Kind: string(e.Kind), Address: e.Port.Local.String(), PublicKey: t.all.wireGuard.public(), Mtu: uint32(e.Port.MTU)}
}

// connect tries those that offer tunnels, one after the other, until one answers through its tunnel.
func (t *Tunnel) connect(ctx context.Context, has *End) (*End, error) {
	answer, err := t.ask(ctx, &apiv1.TunnelRequest{})
	if err != nil {
		return nil, err
	}
	list, why := t.candidates(answer, has)
	for i := range list {
		e, err := t.try(ctx, has, list[i])
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return e, nil
		}
		why = append(why, fmt.Sprintf("%s: %v", &list[i], err))
	}
	if len(why) == 0 {
		return nil, errors.New("no router of the network offers tunnels: start one with --tunnel ADDRESS")
	}
	return nil, errors.New(strings.Join(why, "; "))
}

// candidates are the offers that this host can use, the best first, and why it cannot use others.
func (t *Tunnel) candidates(answer *apiv1.TunnelResponse, has *End) (list []End, why []string) {
	used := t.all.routers(t)
	for _, o := range answer.Offers {
		e := End{Kind: underlay.Kind(o.Kind), Router: o.Router, Key: o.PublicKey}
		var err error
		if e.At, err = netip.ParseAddrPort(o.Address); err != nil || !slices.Contains(t.kinds, e.Kind) {
			continue
		}
		way, err := underlay.Reach(e.At.Addr())
		switch {
		case err != nil:
			why = append(why, fmt.Sprintf("%s: %v", &e, err))
			continue
		case e.Kind == underlay.WireGuard && used[e.Router]:
			why = append(why, fmt.Sprintf("%s: another tunnel of this host leads there", &e))
			continue
		case e.Kind == underlay.VXLAN && len(t.kinds) > 1 && behindNAT(answer.Seen):
			continue // nothing comes back to an address that only this side of the NAT knows
		}
		mtu := e.Kind.Fit(way.MTU, e.At.Addr())
		e.Port = underlay.Port{Name: t.name, Local: way.Source, Remote: e.At.Addr(), UDP: e.At.Port(), MTU: mtu,
			Whole: mtu > underlay.MinMTU, Note: underlay.Note(t.all.cfg.Host, t.name, e.Kind)}
		list = append(list, e)
	}
	if len(list) == 0 && len(why) == 0 && len(answer.Offers) > 0 {
		why = append(why, fmt.Sprintf("no router of the network offers tunnels of kind %s: start one with --tunnel %s:ADDRESS", kindNames(t.kinds), t.kinds[0]))
	}
	t.sort(list, answer.Trust, has)
	return list, why
}

func kindNames(kinds []underlay.Kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, " or ")
}

// behindNAT reports whether the controller saw another address than those of this host. One that sits beside the
// controller, or asks by way of another machine, is taken for one behind a NAT: it loses nothing but some speed.
func behindNAT(seen string) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(own, func(a net.Addr) bool {
		p, ok := a.(*net.IPNet)
		return ok && p.IP.String() == seen
	})
}

// sort puts the router of before first, for flows stay where they are; then those that other tunnels of this host
// do not use; then the kind, encrypted where the network asks hosts for keys, fast where anybody may join; then
// who is near; then who has fewer tunnels, as the controller told.
func (t *Tunnel) sort(list []End, trust string, has *End) {
	kinds := []underlay.Kind{underlay.VXLAN, underlay.WireGuard}
	if trust != "open" {
		slices.Reverse(kinds)
	}
	used := t.all.routers(t)
	var at []netip.Addr
	for i := range list {
		at = append(at, list[i].At.Addr())
	}
	trips := underlay.Trips(at, tunnelNear)
	rank := func(is bool) int {
		if is {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b End) int {
		return cmp.Or(
			cmp.Compare(rank(has != nil && a.Router == has.Router), rank(has != nil && b.Router == has.Router)),
			cmp.Compare(rank(!used[a.Router]), rank(!used[b.Router])),
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(trips[a.At.Addr()]/nearly, trips[b.At.Addr()]/nearly))
	})
}

// try makes a tunnel to one that offers it, and finds out what it carries.
func (t *Tunnel) try(ctx context.Context, has *End, e End) (*End, error) {
	answer, err := t.ask(ctx, t.request(&e))
	if err != nil {
		return nil, err
	}
	e.Port.Number = answer.Number
	if e.LinkLocal, err = netip.ParseAddr(answer.LinkLocal); err != nil {
		return nil, fmt.Errorf("the far end's address: %w", err)
	}
	if err := t.make(has, &e); err != nil {
		return nil, err
	}
	if err := t.listen(); err != nil {
		return nil, err
	}
	if t.trip, err = t.echo.Reply(ctx, e.LinkLocal, tunnelHeard); err != nil {
		return nil, fmt.Errorf("%w: does UDP pass between %v and %v?", err, e.Port.Local, e.At)
	}
	if most := e.Port.MTU; most > underlay.MinMTU {
		e.Port.MTU = t.echo.Largest(ctx, e.LinkLocal, most, t.trip, func() int { return t.bound(&e) })
		if e.Port.MTU < most {
			if err := t.shrink(ctx, &e); err != nil {
				return nil, err
			}
		}
	}
	return &e, nil
}

// make makes this end, or leads it elsewhere where it is the same tunnel still.
func (t *Tunnel) make(has *End, e *End) error {
	same := has != nil && has.Port.Number == e.Port.Number && has.Kind == e.Kind && has.Port.UDP == e.Port.UDP &&
		has.Port.Whole == e.Port.Whole && underlay.There(t.name)
	if e.Kind == underlay.WireGuard {
		if !same {
			if err := underlay.Remove(t.name); err != nil {
				return err
			}
		}
		if err := t.all.wireGuard.set(underlay.Peer{Port: e.Port, Key: e.Key, Endpoint: e.At}); err != nil {
			return err
		}
		return e.Port.Start()
	}
	if err := t.all.wireGuard.drop(t.name); err != nil {
		return err
	}
	if same {
		return cmp.Or(e.Port.Turn(), e.Port.Start())
	}
	if err := underlay.Remove(t.name); err != nil {
		return err
	}
	return cmp.Or(e.Port.Make(-1), e.Port.Start())
}
