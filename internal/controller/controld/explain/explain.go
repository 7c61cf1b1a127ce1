package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// told is how many events an explanation has.
const told = 50

// A Plan knows who serves, and what each gets.
type Plan interface {
	Instances(id sid.ServiceID) []plan.Instance
	Capable(id sid.ServiceID) (hosts []string) // that can resume others' flows
	Served(id sid.ServiceID) (instances int, taken bool)
}

// Services are those that there are.
type Services interface {
	ByID(id sid.ServiceID) (names.Record, bool)
	Named(name string) (names.Record, error)
	Has(name string) bool
	All() []names.Record
	Address(id sid.ServiceID) string
	Nameless(hosts, allow []string, knows func(service string) bool) []string // of which nothing bears the name
}

// Overrides are what operators say of single hosts of services.
type Overrides interface {
	Of(id sid.ServiceID, host string) store.Override
	Mode(host string, id sid.ServiceID) string // of a drain
}

// Access knows who may connect to each service, as locators.
type Access interface {
	Set(id sid.ServiceID) resolve.AccessList
}

// Registrations are what hosts would serve.
type Registrations interface {
	Missed(id sid.ServiceID) (had bool, asked time.Time) // it had an instance once; a host asked for it
}

// Hosts are those of the network.
type Hosts interface {
	Names() []string                    // of all that are known, sorted
	Locators(host string) []sid.Locator // of one that is here
	Refused(host string) []Refusal      // of one that is here: what it would serve and may not
	Since(host string, t sid.Triple) time.Time
	Load(host string, t sid.Triple) (flows, acceptQueue uint32)
	Resumes(host string, t sid.Triple) bool // its instance can go on with others' flows
	Places(host string) []Place             // the preferred one first
	Left(host string) []Left
}

// A Refusal is what a host would serve and may not.
type Refusal struct {
	Triple sid.Triple
	Why    string
}

// A Place is where a host is.
type Place struct {
	Router, Port string
	Locator      sid.Locator
	State        plan.HostState
}

// A Left is a locator that a host left, and where what still comes there is sent.
type Left struct {
	From, To sid.Locator
	Leads    bool // the way stands
}

// Routers resolve first packets.
type Routers interface {
	Resolvers() []Resolver // by name
}

// A Resolver is a service router.
type Resolver struct {
	Name   string
	Away   bool
	Behind bool // it has not applied all that it was told
}

// History is what happened and was ordered.
type History interface {
	Last(count int, wants func(*apiv1.Event) bool) []*apiv1.Event
}

// A Network is what is to be known of one.
type Network struct {
	Plan          Plan
	Services      Services
	Overrides     Overrides
	Access        Access
	Registrations Registrations
	Hosts         Hosts
	Routers       Routers
	History       History
	Keyed         func() bool // members prove who they are
}

// Service is all that there is to say of one.
func (n *Network) Service(r names.Record) *apiv1.ServiceExplanation {
	return &apiv1.ServiceExplanation{Service: n.Shown(r), Reasons: n.reasons(r), Events: n.eventsOf(r)}
}

// reasons are one line for each instance, then who is refused, then one for each rule.
func (n *Network) reasons(r names.Record) (lines []string) {
	list := n.Plan.Instances(r.ID)
	for _, i := range list {
		lines = append(lines, n.whyShare(list, i))
	}
	if len(list) == 0 {
		lines = append(lines, "no host serves it: new flows are refused")
	}
	lines = append(lines, n.access(r)...)
	lines = append(lines, n.resolvers(), n.failover(r))
	for _, host := range hostsOf(list) {
		lines = append(lines, n.whereAbouts(host)...)
	}
	return lines
}

// percentOf is a share for people; what is not nothing is never 0 %.
func percentOf(part, whole uint32) string {
	p := 100 * float64(part) / float64(whole)
	if p < 1 {
		return "less than 1 %"
	}
	return fmt.Sprintf("%.0f %%", p)
}

// whyShare explains the share of new flows that an instance gets among those of its triple.
func (n *Network) whyShare(list []plan.Instance, i plan.Instance) string {
	var total uint32
	for _, other := range list {
		if other.Triple == i.Triple {
			total += other.Effective
		}
	}
	share := "no new flows"
	if i.Effective > 0 {
		share = percentOf(i.Effective, total) + " of new flows"
	}
	flows, _ := n.Hosts.Load(i.Host, i.Triple)
	line := fmt.Sprintf("%s %v/%d at %v: %s, weight %d (%s), %s", i.Host, i.Triple.Proto, i.Triple.Port, i.Locator, share,
		i.Weight, n.whyWeight(i), i.State)
	if n.Hosts.Resumes(i.Host, i.Triple) {
		line += ", can resume flows of others"
	}
	return events.Because(line+", "+events.Counted(int(flows), "live flow"), i.Reason)
}

func (n *Network) whyWeight(i plan.Instance) string {
	r, _ := n.Services.ByID(i.Triple.Service)
	switch {
	case n.Overrides.Of(i.Triple.Service, i.Host).Set:
		return "set by an operator"
	case r.Policy.Weight != 0:
		return "the service's policy"
	}
	return "the default"
}

func (n *Network) resolvers() string {
	var list []string
	for _, r := range n.Routers.Resolvers() {
		switch {
		case r.Away:
			list = append(list, r.Name+" (away: by what it knows)")
		case r.Behind:
			list = append(list, r.Name+" (has not applied the latest rules yet)")
		default:
			list = append(list, r.Name)
		}
	}
	if len(list) == 0 {
		return "no service router has joined: nobody resolves first packets"
	}
	return "first packets are resolved by " + strings.Join(list, ", ")
}

func (n *Network) failover(r names.Record) string {
	drain := "; a drain is to " + r.Policy.DrainMode()
	switch capable := n.Plan.Capable(r.ID); {
	case r.Policy.Failover != names.Continue:
		return "when an instance is gone its connections are reset (failover: reset)" + drain
	case !n.Keyed():
		return "when an instance is gone its connections are reset: failover is continue, which cannot hold in an open network" + drain
	case len(capable) == 0:
		return "when an instance is gone its connections are reset: failover is continue, and no instance can resume" + drain
	default:
		return "when an instance is gone another one that can resume goes on with its connections (failover: continue): " + strings.Join(capable, ", ") + drain
	}
}

// whereAbouts tells of a host's further places, and of those that it left.
func (n *Network) whereAbouts(host string) (lines []string) {
	places := n.Hosts.Places(host)
	for i, at := range places {
		if i > 0 {
			lines = append(lines, fmt.Sprintf("%s is also at %s %s (%v), %v: new flows go there if it says so, or if %v is gone", host, at.Router, at.Port, at.Locator, at.State, places[0].Locator))
		}
	}
	for _, l := range n.Hosts.Left(host) {
		if l.Leads {
			lines = append(lines, fmt.Sprintf("%s left %v: what still comes there is sent on to %v", host, l.From, l.To))
		} else {
			lines = append(lines, fmt.Sprintf("%s left %v: what still comes there will be sent on to %v once the way there stands", host, l.From, l.To))
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
func (n *Network) eventsOf(r names.Record) []*apiv1.Event {
	hosts := hostsOf(n.Plan.Instances(r.ID))
	about := func(e *apiv1.Event) bool {
		if strings.HasPrefix(e.Kind, "service.") || strings.HasPrefix(e.Kind, "instance.") {
			return e.Subject == r.Name
		}
		return e.Subject == r.Name || slices.Contains(hosts, e.Subject) && (e.Attrs["service"] == "" || e.Attrs["service"] == r.Name)
	}
	all := n.History.Last(2*events.Remembered, events.Every)
	list := slices.DeleteFunc(all, func(e *apiv1.Event) bool { return !about(e) })
	return list[len(list)-min(len(list), told):]
}
