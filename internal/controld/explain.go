package controld

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
)

// toldEvents is how many events a story has.
const toldEvents = 50

// Explain tells why new flows of a service go where they go, and what happened to it and its hosts lately.
func (a *adminAPI) Explain(ctx context.Context, req *connect.Request[apiv1.ExplainRequest]) (*connect.Response[apiv1.ServiceStory], error) {
	return get(ctx, a.n, func() (*apiv1.ServiceStory, error) {
		r, err := a.n.lookup(req.Msg.Name)
		if err != nil {
			return nil, err
		}
		return &apiv1.ServiceStory{Service: a.n.service(r), Reasons: a.n.reasons(r), Events: a.n.eventsOf(r)}, nil
	})
}

// reasons are one line for each instance, then one for each rule.
func (n *network) reasons(r names.Record) (lines []string) {
	list := n.plan.Instances(r.ID)
	for _, i := range list {
		lines = append(lines, n.whyShare(list, i))
	}
	if len(list) == 0 {
		lines = append(lines, "no host serves it: new flows are refused")
	}
	lines = append(lines, n.resolvers(), n.failoverOf(r))
	for _, h := range hostsOf(list) {
		lines = append(lines, n.whereAbouts(n.hosts[h])...)
	}
	return lines
}

// whyShare explains the share of new flows that an instance gets among those of its triple.
func (n *network) whyShare(list []plan.Instance, i plan.Instance) string {
	var total uint32
	for _, other := range list {
		if other.Triple == i.Triple {
			total += other.Effective
		}
	}
	share := "no new flows"
	if i.Effective > 0 {
		share = fmt.Sprintf("%d of every %d new flows", i.Effective, total)
	}
	flows, _ := n.hosts[i.Host].loadOf(i.Triple)
	line := fmt.Sprintf("%s %v/%d at %v: %s, weight %d (%s), %s", i.Host, i.Triple.Proto, i.Triple.Port, i.Locator, share,
		i.Weight, n.whyWeight(i), i.State)
	if n.hosts[i.Host].wanted[i.Triple].ready.Resume {
		line += ", can resume flows of others"
	}
	return because(fmt.Sprintf("%s, %d live flows", line, flows), i.Reason)
}

func (n *network) whyWeight(i plan.Instance) string {
	r, _ := n.names.ByID(i.Triple.Service)
	switch {
	case n.overrides[overrideKey{i.Triple.Service, i.Host}].Set:
		return "set by an operator"
	case r.Policy.Weight != 0:
		return "the service's policy"
	}
	return "the default"
}

func (n *network) resolvers() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(n.routers)) {
		switch r := n.routers[name]; {
		case !r.Service:
		case r.session == nil:
			list = append(list, name+" (away: by what it knows)")
		case !r.synced || r.applied < r.told:
			list = append(list, name+" (has not applied the latest rules yet)")
		default:
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return "no service router has joined: nobody resolves first packets"
	}
	return "first packets are resolved by " + strings.Join(list, ", ")
}

func (n *network) failoverOf(r names.Record) string {
	drain := "; a drain is to " + r.Policy.DrainMode()
	switch capable := n.plan.Capable(r.ID); {
	case r.Policy.Failover != names.Continue:
		return "when an instance is gone its connections are reset (failover: reset)" + drain
	case n.key == nil:
		return "when an instance is gone its connections are reset: failover is continue, which cannot hold in an open network" + drain
	case len(capable) == 0:
		return "when an instance is gone its connections are reset: failover is continue, and no instance can resume" + drain
	default:
		return "when an instance is gone another one that can resume goes on with its connections (failover: continue): " + strings.Join(capable, ", ") + drain
	}
}

// whereAbouts tells of a host's further places, and of those that it left.
func (n *network) whereAbouts(h *host) (lines []string) {
	for i, at := range n.at(h) {
		if i > 0 {
			lines = append(lines, fmt.Sprintf("%s is also at %s %s (%v), %v: new flows go there if it says so, or if %v is gone", h.Name, at.Router, at.Port, at.Locator, at.state, h.Locator))
		}
	}
	for _, from := range slices.Sorted(maps.Keys(n.redirects)) {
		r := n.redirects[from]
		switch {
		case r.Host != h.Name:
		case r.leads:
			lines = append(lines, fmt.Sprintf("%s left %v: what still comes there is sent on to %v", h.Name, r.From, r.To))
		default:
			lines = append(lines, fmt.Sprintf("%s left %v: what still comes there will be sent on to %v once the way there stands", h.Name, r.From, r.To))
		}
	}
	return lines
}

func hostsOf(list []plan.Instance) []string {
	var hosts []string
	for _, i := range list {
		hosts = append(hosts, i.Host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// eventsOf are the last ones of the service and of the hosts that serve it.
func (n *network) eventsOf(r names.Record) []*apiv1.Event {
	hosts := hostsOf(n.plan.Instances(r.ID))
	about := func(e *apiv1.Event) bool {
		if strings.HasPrefix(e.Kind, "service.") || strings.HasPrefix(e.Kind, "instance.") {
			return e.Subject == r.Name
		}
		return e.Subject == r.Name || slices.Contains(hosts, e.Subject) && (e.Attrs["service"] == "" || e.Attrs["service"] == r.Name)
	}
	all := n.events.last(remembered)
	list := slices.DeleteFunc(all, func(e *apiv1.Event) bool { return !about(e) })
	return list[len(list)-min(len(list), toldEvents):]
}
