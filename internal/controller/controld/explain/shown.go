package explain

import (
	"fmt"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
)

// Shown is a service with its instances.
func (n *Network) Shown(r names.Record) *apiv1.Service {
	return &apiv1.Service{
		Name: r.Name, Sid: r.ID.String(), Address: n.Services.Address(r.ID),
		Policy: specs.PolicyOf(r.Policy), CreatedUnixMs: r.Created, Instances: n.Instances(n.Plan.Instances(r.ID)),
		Access: specs.AccessOf(r.Access), Owner: r.Owner(), Version: r.Version,
	}
}

// Instances are some as people are shown them.
func (n *Network) Instances(list []plan.Instance) []*apiv1.Instance {
	out := make([]*apiv1.Instance, 0, len(list))
	for _, i := range list {
		m := &apiv1.Instance{
			Host: i.Host, Locator: i.Locator.String(), Proto: i.Triple.Proto.String(), Port: uint32(i.Triple.Port),
			Weight: i.Weight, Effective: i.Effective, State: i.State, Reason: i.Reason, SinceUnixMs: n.Hosts.Since(i.Host, i.Triple).UnixMilli(),
		}
		m.Flows, m.AcceptQueue = n.Hosts.Load(i.Host, i.Triple)
		if i.State == "draining" {
			m.Reason += fmt.Sprintf(" (%s), %s left", n.Overrides.Mode(i.Host, i.Triple.Service), events.Counted(int(m.Flows), "flow"))
		}
		out = append(out, m)
	}
	return out
}
