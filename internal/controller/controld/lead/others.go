package lead

import (
	"cmp"
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/health"
)

// otherWait bounds the asking of another controller: people wait for the answer, and one that is gone gives none.
const otherWait = 400 * time.Millisecond

// askOthers asks each of the other controllers how it is, all at once; nil of those that do not answer.
func (c *Process) askOthers(ctx context.Context, endpoints map[string][]string) map[string]*apiv1.Health {
	ctx, cancel := context.WithTimeout(ctx, otherWait)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	answers := make(map[string]*apiv1.Health)
	for name, list := range endpoints {
		for _, endpoint := range list {
			asking.Go(func() {
				if h := c.askOther(ctx, endpoint); h != nil {
					mu.Lock()
					defer mu.Unlock()
					answers[name] = h
				}
			})
		}
	}
	asking.Wait()
	return answers
}

func (c *Process) askOther(ctx context.Context, endpoint string) *apiv1.Health {
	if c.Gate != nil && !c.Gate.Ready() { // it cannot show who it is: that somebody listens is all that can be known
		e, err := api.ParseEndpoint(endpoint)
		if err != nil {
			return nil
		}
		conn, err := new(net.Dialer).DialContext(ctx, e.Network, e.Address)
		if err != nil {
			return nil
		}
		conn.Close()
		return new(apiv1.Health)
	}
	h, err := c.others().GetHealth(context.WithValue(ctx, onwardKey{}, endpoint), connect.NewRequest(&apiv1.GetHealthRequest{Own: true}))
	switch {
	case err == nil:
		return h.Msg
	case connect.CodeOf(err) == connect.CodeUnimplemented: // an older one: it answers
		return new(apiv1.Health)
	}
	return nil
}

// others calls the controller whose endpoint is in the call's context.
func (c *Process) others() apiv1connect.AdminClient {
	return apiv1connect.NewAdminClient(&http.Client{Transport: c.onward}, api.BaseURL())
}

// cluster is how the controllers are, and the parts of the state of the others that answer.
func (c *Process) cluster(ctx context.Context) (health.Cluster, map[string]*apiv1.Disk) {
	running, trouble, _ := c.Peers.Now()
	of := health.Cluster{Several: true}
	if c.cfg.Cluster == nil {
		of.Store = c.store.String()
	}
	if l := c.Peers.Leader(); l != nil {
		of.Leader, of.Store = l.Name, ""
	} else {
		of.Since, of.Lease = c.Peers.Leaderless(), c.cfg.LeaderLease
	}
	if trouble != nil {
		of.Trouble = trouble.Error()
	}
	byName := map[string]*health.Controller{}
	at := map[string][]string{}
	get := func(name string) *health.Controller {
		if byName[name] == nil {
			byName[name] = &health.Controller{Name: name, Away: name != c.cfg.Name}
		}
		return byName[name]
	}
	for name, endpoints := range c.known(ctx) {
		get(name)
		at[name] = endpoints
	}
	for _, m := range c.store.Peers() {
		x := get(cmp.Or(m.Name, m.URL))
		x.Votes, x.Learns = !m.New, m.New
	}
	for _, r := range running {
		x := get(r.Name)
		x.Version, at[r.Name] = r.Version, r.API
		x.Away = x.Away && trouble != nil // by the store's lease it runs
	}
	delete(at, c.cfg.Name)
	disks := map[string]*apiv1.Disk{}
	for name, h := range c.askOthers(ctx, at) {
		x := get(name)
		x.Away = false
		if h.NowUnixMs != 0 {
			x.Ahead = time.Until(time.UnixMilli(h.NowUnixMs))
		}
		x.Version = cmp.Or(h.Version, x.Version)
		if h.Disk != nil {
			disks[name] = h.Disk
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		of.Controllers = append(of.Controllers, *byName[name])
	}
	return of, disks
}

// known are the endpoints of the controllers that the network remembers, while this one leads.
func (c *Process) known(ctx context.Context) map[string][]string {
	list := map[string][]string{}
	if t := c.term.Load(); t != nil {
		known, _ := t.Known(ctx) // a term that ends knows none
		for name, k := range known {
			list[name] = k.API
		}
	}
	return list
}
