package emurouter

import (
	"fmt"
	"os"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/router/agent"
)

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// join is the first report of a session.
func (c *control) join() *apiv1.RouterJoin {
	return &apiv1.RouterJoin{Name: c.cfg.Name, Service: c.cfg.Service, BootId: bootID(), Version: obs.Version(),
		Generation: c.generation, Block: c.cfg.Block, LinkKey: c.keys.Public()}
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
	c.session, c.told = s, nil
	c.naming.Drop()
	c.log.Info("joined", "network", j.Network, "locator", own)
	c.keys.Take(j.Routers)
	c.neighbours.Listed()
	c.tellNeighbours()
	c.hosts.Tell(s)
	for port, up := range c.up {
		if up {
			c.greet(port) // with the locator, perhaps a new one
		}
	}
	c.proveAll()
	return nil
}

// parted ends a session. Forwarding goes on.
func (c *control) parted(s *agent.Session) {
	if c.session == s {
		c.session = nil
		c.naming.Drop()
	}
}

// hostChanges takes what probes found.
func (c *control) hostChanges(changes []liveness.Change) { c.hosts.Changed(c.session, changes, c.log) }
