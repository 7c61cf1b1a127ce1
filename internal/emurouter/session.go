package emurouter

import (
	"fmt"
	"os"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/agent"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/sid"
)

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// join is the first report of a session.
func (c *control) join() *apiv1.RouterJoin {
	return &apiv1.RouterJoin{Name: c.cfg.Name, Service: c.cfg.Service, BootId: bootID(), Version: obs.Version(),
		Generation: c.generation, Block: c.cfg.Block}
}

// joined takes the router's place in the network, and tells the controller all that it may have missed.
func (c *control) joined(s *agent.Session, j *apiv1.RouterJoined) error {
	space, own, err := agent.Place(j)
	if err != nil {
		return fmt.Errorf("the controller's answer: %w", err)
	}
	every := max(1, j.ProbeIntervalMs)
	c.do(func() {
		c.path.place(space, own)
		c.path.every = time.Duration(every) * time.Millisecond
		c.path.probes.SetLimits(agent.Limits(j, every))
	})
	c.locator = own
	c.session, c.told, c.naming = s, nil, nil
	c.log.Info("joined", "network", j.Network, "locator", own)
	c.tellNeighbours()
	c.tellHosts(c.hosts)
	for port, up := range c.up {
		if up {
			c.greet(port) // with the locator, perhaps a new one
		}
	}
	return nil
}

// parted ends a session. Forwarding goes on.
func (c *control) parted(s *agent.Session) {
	if c.session == s {
		c.session, c.naming = nil, nil
	}
}

// hostChanges notes and reports what probes found; hosts that were given up meanwhile are left out.
func (c *control) hostChanges(changes []liveness.Change) {
	fresh := map[sid.Locator]liveness.Change{}
	for _, x := range changes {
		if _, ok := c.probing[x.Locator]; ok {
			c.hosts[x.Locator], fresh[x.Locator] = x, x
			c.log.Info("host", "locator", x.Locator, "state", x.State, "missed", x.Missed, "by", x.Reason)
		}
	}
	c.tellHosts(fresh)
}

func (c *control) tellHosts(hosts map[sid.Locator]liveness.Change) {
	if c.session == nil || len(hosts) == 0 {
		return
	}
	states := &apiv1.HostStates{}
	for _, x := range hosts {
		states.Hosts = append(states.Hosts, &apiv1.HostState{Locator: uint64(x.Locator), State: string(x.State), Missed: x.Missed, Reason: x.Reason})
	}
	c.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Hosts{Hosts: states}})
}
