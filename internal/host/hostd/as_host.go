package hostd

import (
	"context"
	"errors"
	"net/http"

	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/host/joining"
)

// An asHost is the host as its controllers know it; of the goroutine that keeps the session.
type asHost struct {
	member.Member[*apiv1.HostReport, *apiv1.HostOrder, *apiv1.Joined]
	c    *control
	bids []*joining.Bid // for places, with the join
}

func newAsHost(c *control) *asHost {
	a := &asHost{c: c}
	a.Member = member.Member[*apiv1.HostReport, *apiv1.HostOrder, *apiv1.Joined]{
		Who: "this host", Controllers: c.d.controllers,
		Open: func(ctx context.Context, client *http.Client, base string) member.Stream[*apiv1.HostReport, *apiv1.HostOrder] {
			return apiv1connect.NewAgentClient(client, base).Host(ctx)
		},
		Refused: func(no *apiv1.Refused) { c.d.post(func() { c.d.uplinks.NoRouter(no.NoRouter) }) },
		Joined:  a.joined, Order: a.order, Parted: a.parted,
	}
	return a
}

// attempt is one session: join, then orders until it ends or another way is taken.
func (a *asHost) attempt(ctx context.Context, changed <-chan struct{}, endpoint string, client *http.Client) (joined bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return a.Hold(ctx, endpoint, client, a.ask)
}

func (a *asHost) ask(ctx context.Context) (*apiv1.HostReport, error) {
	var ask *apiv1.Join
	if ask, a.bids = a.c.d.joining.Join(ctx); len(a.bids) == 0 {
		return nil, errors.New("no uplink leads to a router")
	}
	return &apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: ask}}, nil
}

func (a *asHost) joined(ctx context.Context, s *hostSession, j *apiv1.Joined) error {
	c, bids := a.c, a.bids
	c.mu.Lock()
	c.reached, c.session, c.trouble, c.ended, c.once = true, true, "", s.Ended(), j.OrdersOnce
	c.said.Forget()
	c.mu.Unlock()
	c.d.metrics.joins.Inc()
	c.d.post(func() {
		if ctx.Err() == nil { // else another way was taken meanwhile
			c.d.joined(j, bids, s)
		}
	})
	return nil
}

func (a *asHost) order(o *apiv1.HostOrder) error {
	a.c.d.post(func() { a.c.d.order(o) })
	return nil
}

func (a *asHost) parted(s *hostSession) {
	a.c.mu.Lock()
	a.c.session = false
	a.c.mu.Unlock()
	a.c.d.post(func() { // forgotten
		if a.c.out == s {
			a.c.out = nil
		}
	})
}
