package plan

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// Rules are entries of a router's tables: a delta in a Step, everything in a Snapshot.
type Rules struct {
	Routes      []Route
	Services    []ServiceRule
	Resolutions []Resolution
	Probes      []Probe
	Redirects   []Redirect
	Gone        []Gone
	Sources     []Source
}

// Empty reports whether there is nothing to say.
func (r *Rules) Empty() bool {
	return len(r.Routes)+len(r.Services)+len(r.Resolutions)+len(r.Probes)+len(r.Redirects)+len(r.Gone)+len(r.Sources) == 0
}

// A Route is one entry of the forwarding table.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
	Port   string
	MAC    [6]byte
	Gone   bool
}

// A ServiceRule says that a service exists, and how many targets all its triples have together:
// none is refused otherwise than an unserved port, docs/protocol.md §3.5.
type ServiceRule struct {
	Service   sid.ServiceID
	Instances uint32
	Forbidden bool
	Gone      bool
}

// A Resolution is the table of one triple; port 0 stands for any port, of UDP or, with
// protocol 0, of whatever protocol. No targets:
// removed. Targets are shared between all who get them: read only.
type Resolution struct {
	Triple  sid.Triple
	Targets []resolve.Target // by locator; no weight is 0
}

// A Probe is an order to the first-hop router to watch a host.
type Probe struct {
	Locator sid.Locator
	Port    string
	Gone    bool
}

// A Redirect rewrites a locator that moved, at the router of the old place.
type Redirect struct {
	From, To sid.Locator
	Gone     bool
}

// Gone says that nobody is at a locator of the router's block: senders are to be told so.
type Gone struct {
	Locator sid.Locator
	Back    bool // no longer so
}

// A Source lets packets in at a port, by the locator that they come from.
type Source struct {
	Port    string
	Locator sid.Locator
	Gone    bool
}

// A Step is a delta for some routers. Steps are sent in order.
type Step struct {
	Routers []string
	Rules   Rules
}
