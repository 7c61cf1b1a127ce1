package specs

import (
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
)

// PolicyOf is a policy as the API has it.
func PolicyOf(p names.Policy) *apiv1.Policy {
	return &apiv1.Policy{
		Failover: p.Failover, Drain: p.Drain, Ready: p.Ready, Weight: p.Weight, Datagrams: p.Datagrams, Dscp: p.DSCP, PatienceMs: p.Patience, Boost: p.Boost,
	}
}

// Policy is one that the API has.
func Policy(p *apiv1.Policy) names.Policy {
	return names.Policy{
		Failover: p.GetFailover(), Drain: p.GetDrain(), Ready: strings.TrimSpace(p.GetReady()),
		Weight: p.GetWeight(), Datagrams: p.GetDatagrams(), DSCP: p.GetDscp(), Patience: p.GetPatienceMs(), Boost: p.GetBoost(),
	}
}

// AccessOf is who may serve and connect, as the API has it.
func AccessOf(a names.Access) *apiv1.Access {
	return &apiv1.Access{Key: names.FormatKey(a.Key), Servers: a.Servers, Allow: a.Allow}
}
