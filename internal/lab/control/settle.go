package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
)

// settleTime bounds how long a network may take from the start of its daemons until all have joined.
const settleTime = 60 * time.Second

// Settle creates the services and waits until every router and host is part of the network.
func (c *Control) Settle(ctx context.Context) error {
	if c.Stub || c.Plan.File.Bare {
		return nil
	}
	admin, err := c.Admin()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, fmt.Errorf("the network did not settle in %v", settleTime))
	defer cancel()
	wait := func(check func() error) error {
		return poll.Until(ctx, func() error {
			if err := c.Alive(); err != nil {
				return err
			}
			return check()
		})
	}
	if err := wait(func() error { return c.answers(ctx, admin) }); err != nil {
		return c.unsettled(err)
	}
	for _, s := range c.Plan.File.Services {
		if err := createService(ctx, admin, s); err != nil {
			return err
		}
	}
	if err := wait(func() error { return c.joined(ctx, admin) }); err != nil {
		return c.unsettled(err)
	}
	for _, n := range c.Plan.Nodes {
		if !n.Kind.IsHost() {
			continue
		}
		if err := wait(func() error { return c.hostReady(ctx, n) }); err != nil {
			return c.unsettled(err)
		}
	}
	return nil
}

// hostReady is an error until the host itself says that it has joined: the controller knows before
// the host has set up its addresses.
func (c *Control) hostReady(ctx context.Context, n *plan.Node) error {
	client, base, err := api.Dial("unix:" + c.Dir.Socket(n))
	if err != nil {
		return poll.Final(err)
	}
	defer client.CloseIdleConnections()
	s, err := apiv1connect.NewLocalClient(client, base).GetHostStatus(ctx, connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil {
		return fmt.Errorf("%s (host) does not answer: %w", n.Name, err)
	}
	if s.Msg.State != "joined" {
		return fmt.Errorf("%s (host) is not ready: %s %s", n.Name, s.Msg.State, s.Msg.Reason)
	}
	return nil
}

// unsettled adds where to look: the log of the first daemon that is missing is in the error's text.
func (c *Control) unsettled(err error) error {
	for _, n := range c.Plan.Nodes {
		if n.Daemon() != "" && strings.Contains(err.Error(), n.Name+" ") {
			return fmt.Errorf("%w; the end of the log of %s:\n%s", err, n.Name, c.Processes.LogTail(n.Name, n.Daemon()))
		}
	}
	return err
}

func (c *Control) answers(ctx context.Context, admin apiv1connect.AdminClient) error {
	if _, err := admin.GetStatus(ctx, connect.NewRequest(&apiv1.GetStatusRequest{})); err != nil {
		return fmt.Errorf("%s (controller) does not answer: %w", c.Plan.File.Of(file.Controller)[0].Name, err)
	}
	return nil
}

func createService(ctx context.Context, admin apiv1connect.AdminClient, s *file.Service) error {
	policy := &apiv1.Policy{Ready: s.Ready, Weight: s.Weight, Datagrams: s.Datagrams, Dscp: s.DSCP,
		Failover: s.Failover, Drain: s.Drain, PatienceMs: s.Patience}
	_, err := admin.CreateService(ctx, connect.NewRequest(&apiv1.CreateServiceRequest{Name: s.Name, Policy: policy}))
	if err != nil && connect.CodeOf(err) != connect.CodeAlreadyExists {
		return fmt.Errorf("create service %s: %w", s.Name, err)
	}
	return nil
}

// joined is an error that names the first router or host that has not joined.
func (c *Control) joined(ctx context.Context, admin apiv1connect.AdminClient) error {
	routers, err := admin.ListRouters(ctx, connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		return fmt.Errorf("ask for the routers: %w", err)
	}
	hosts, err := admin.ListHosts(ctx, connect.NewRequest(&apiv1.ListHostsRequest{}))
	if err != nil {
		return fmt.Errorf("ask for the hosts: %w", err)
	}
	up := map[string]bool{}
	for _, r := range routers.Msg.Routers {
		up[r.Name] = r.State == "up" && c.adjacent(r)
	}
	for _, h := range hosts.Msg.Hosts {
		up[h.Name] = h.State == "up"
	}
	for _, n := range c.Plan.Nodes {
		if (n.IsRouter() || n.Kind.IsHost()) && !up[n.Name] {
			return fmt.Errorf("%s (%s) has not joined", n.Name, n.Kind)
		}
	}
	return nil
}

// adjacent reports whether a router sees all routers that the plan puts next to it.
func (c *Control) adjacent(r *apiv1.Router) bool {
	n := c.Plan.Node(r.Name)
	if n == nil {
		return true
	}
	seen := map[string]bool{}
	for _, link := range r.Links {
		seen[link.Peer] = seen[link.Peer] || link.Up
	}
	for _, p := range n.Ports {
		if p.Far.IsRouter() && !seen[p.Far.Name] {
			return false
		}
	}
	for _, p := range n.Peers {
		if !seen[p.Name] {
			return false
		}
	}
	return true
}
