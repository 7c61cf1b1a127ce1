package hosts

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/sid"
)

// A router is a stream, and the tables that its rules would fill: how many targets each triple has.
type router struct {
	name      string
	client    *http.Client
	stream    *connect.BidiStreamForClient[apiv1.RouterReport, apiv1.RouterOrder]
	targets   map[sid.Triple]int
	instances int
	knows     *gauge // the crowd's
}

// join says which links the router has; ring is the names of all routers, each of which has a link to the next.
func (r *router) join(ctx context.Context, dial dialer, service bool, ring []string, at int) error {
	to, err := dial(r.name)
	if err != nil {
		return err
	}
	r.client = api.DialWith(to, new(net.Dialer).DialContext)
	r.stream = apiv1connect.NewAgentClient(r.client, api.BaseURL()).Router(ctx)
	r.targets = make(map[sid.Triple]int)
	links := &apiv1.Neighbours{}
	if len(ring) > 2 {
		before, after := (at+len(ring)-1)%len(ring), (at+1)%len(ring)
		links.Links = []*apiv1.Neighbour{
			{Port: "left", Peer: ring[before], PeerPort: "right", Via: "fe80::1", Up: true, Cost: 10},
			{Port: "right", Peer: ring[after], PeerPort: "left", Via: "fe80::2", Up: true, Cost: 10},
		}
	}
	ask := &apiv1.RouterJoin{Name: r.name, BootId: "crowd", Service: service}
	if _, err := member.Join(r.stream, r.name, &apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: ask}}); err != nil {
		return fmt.Errorf("join router %s: %w", r.name, err)
	}
	return r.stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: links}})
}

// obey reads rules until the stream ends.
func (r *router) obey() error {
	for {
		o, err := r.stream.Receive()
		if err != nil {
			return fmt.Errorf("router %s: %w", r.name, err)
		}
		switch o := o.Order.(type) {
		case *apiv1.RouterOrder_Rules:
			err = r.apply(o.Rules)
		case *apiv1.RouterOrder_Commit:
			err = r.applied(o.Commit.Generation)
		}
		if err != nil {
			return fmt.Errorf("router %s: %w", r.name, err)
		}
	}
}

func (r *router) apply(m *apiv1.Rules) error {
	before := r.instances
	for _, x := range m.Resolutions {
		t := sid.Triple{Service: sid.ServiceID{SS: x.Ss, Suffix: sid.Suffix(x.Suffix)}, Proto: sid.Proto(x.Proto), Port: uint16(x.Port)}
		if t.Port == 0 || t.Port == sid.Port && t.Proto == sid.UDP {
			continue // made of others
		}
		r.instances += len(x.Targets) - r.targets[t]
		r.targets[t] = len(x.Targets)
	}
	if r.instances != before {
		r.knows.set(r.name, r.instances)
	}
	states := &apiv1.HostStates{}
	for _, p := range m.Probes {
		if !p.Gone {
			states.Hosts = append(states.Hosts, &apiv1.HostState{Locator: p.Locator, State: "up", Reason: "probes"})
		}
	}
	if len(states.Hosts) > 0 {
		if err := r.stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Hosts{Hosts: states}}); err != nil {
			return err
		}
	}
	return r.applied(m.Generation)
}

func (r *router) applied(generation uint64) error {
	return r.stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: &apiv1.Applied{Generation: generation}}})
}
