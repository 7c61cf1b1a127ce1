package control

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/poll"
)

// boostTime bounds how long agents may take from their start until they carry what they are told to. A switch that has just
// met its controller has its rules within a second.
const boostTime = 30 * time.Second

// Boosting is a client of what the controller says about agents.
func (c *Control) Boosting() (apiv1connect.BoostClient, error) {
	client, base, err := api.Dial(c.Endpoint())
	if err != nil {
		return nil, err
	}
	return apiv1connect.NewBoostClient(client, base), nil
}

// HostAddr is the address of a host that has joined, by which it speaks for itself.
func (c *Control) HostAddr(ctx context.Context, name string) (netip.Addr, error) {
	admin, err := c.Admin()
	if err != nil {
		return netip.Addr{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	var addr netip.Addr
	err = poll.Until(ctx, func() error { // a controller may be about to begin, and its hosts to join again
		hosts, err := admin.ListHosts(ctx, connect.NewRequest(&apiv1.ListHostsRequest{}))
		if err != nil {
			return fmt.Errorf("address of host %s: %w", name, err)
		}
		for _, h := range hosts.Msg.Hosts {
			if p, err := netip.ParsePrefix(h.Locator); err == nil && h.Name == name && h.State == "up" { // else the address may be gone
				addr = p.Addr().Next() // docs/protocol.md §2.3: ::1 is the host itself
				return nil
			}
		}
		return fmt.Errorf("host %s is not up, or has no locator", name)
	})
	return addr, err
}

// Boost says which connections agents carry, as the file has it, and waits until they do. A host's address is the one that it
// has now: one that moves afterwards is not of its site any more.
func (c *Control) Boost(ctx context.Context) error {
	b := c.Plan.File.Boost
	if b == nil || c.Stub {
		return nil
	}
	boost, err := c.Boosting()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, boostTime, fmt.Errorf("agents carry nothing after %v", boostTime))
	defer cancel()
	for _, s := range b.Sites {
		site, err := c.site(ctx, s)
		if err != nil {
			return err
		}
		if _, err := boost.SetBoostSite(ctx, connect.NewRequest(site)); err != nil {
			return fmt.Errorf("site %s: %w", s.Name, err)
		}
	}
	for _, e := range b.Entries {
		if err := c.allow(ctx, boost, e); err != nil {
			return err
		}
	}
	err = poll.Every(ctx, boostPause, func() error { return c.Boosts(ctx) })
	for _, n := range c.Plan.Nodes {
		if err != nil && n.Kind == file.Agent {
			err = fmt.Errorf("%w; the end of the log of agent %s:\n%s", err, n.Name, c.Processes.LogTail(n.Name, file.Boostd))
		}
	}
	return err
}

// boostPause is between two looks at whether agents carry: the controller counts all sessions for each.
const boostPause = 20 * time.Millisecond

// site is what the controller is to know of a site: its switches are those next to its agents.
func (c *Control) site(ctx context.Context, s *file.BoostSite) (*apiv1.BoostSite, error) {
	site := &apiv1.BoostSite{Name: s.Name, Agents: s.Agents}
	for _, host := range s.Hosts {
		addr, err := c.HostAddr(ctx, host)
		if err != nil {
			return nil, err
		}
		site.Prefixes = append(site.Prefixes, netip.PrefixFrom(addr, addr.BitLen()).String())
	}
	for _, agent := range s.Agents {
		for _, port := range c.Plan.Node(agent).Data() {
			if far := port.Far; far.Kind == file.Switch && !slices.Contains(site.Switches, far.Name) {
				site.Switches = append(site.Switches, far.Name)
			}
		}
	}
	return site, nil
}

// allow has an entry for each pair of hosts: the controller takes one prefix for each side.
func (c *Control) allow(ctx context.Context, boost apiv1connect.BoostClient, e *file.BoostEntry) error {
	for _, p := range c.Plan.File.Boost.Pairs(e) {
		from, err := c.HostAddr(ctx, p.Client)
		if err != nil {
			return err
		}
		to, err := c.HostAddr(ctx, p.Server)
		if err != nil {
			return err
		}
		_, err = boost.AllowBoost(ctx, connect.NewRequest(&apiv1.BoostEntry{Name: p.Name, Client: from.String(), Server: to.String(), Port: uint32(e.Port), Accept: e.Accept, Mode: e.Mode}))
		if err != nil {
			return fmt.Errorf("entry %s: %w", p.Name, err)
		}
	}
	return nil
}

// Boosts is an error that names the first entry or agent that is not ready: agents of the file have
// taken what they are to carry, and reach another one where anything is; entries are all that the controller has.
func (c *Control) Boosts(ctx context.Context) error {
	boost, err := c.Boosting()
	if err != nil {
		return err
	}
	all, err := boost.ListBoost(ctx, connect.NewRequest(&apiv1.ListBoostRequest{}))
	if err != nil {
		return fmt.Errorf("ask what is boosted: %w", err)
	}
	agents := map[string]*apiv1.BoostAgent{}
	for _, a := range all.Msg.Agents {
		agents[a.Name] = a
	}
	b := c.Plan.File.Boost
	for _, n := range c.Plan.File.Of(file.Agent) {
		site, a := b.SiteOf(n.Name), agents[n.Name]
		switch {
		case site == nil:
		case !a.GetCurrent():
			return fmt.Errorf("%s (agent) has not taken what it is to carry", n.Name)
		case b.Carries(site) && !slices.ContainsFunc(a.Trunks, func(t *apiv1.BoostTrunk) bool { return t.Up }):
			return fmt.Errorf("%s (agent) reaches no other one", n.Name)
		}
	}
	for _, e := range all.Msg.Entries {
		if e.State != "boosts" {
			return fmt.Errorf("entry %s: %s: %s", e.Name, e.State, e.Why)
		}
	}
	return nil
}
