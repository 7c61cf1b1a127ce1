package plan

import (
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// BlockBits is the prefix length of a router's block of locators, docs/protocol.md §2.3.
const BlockBits = 56

// A Router forwards, and resolves where Service is set.
type Router struct {
	Name    string
	Service bool
	Locator sid.Locator // its own: the first of its block of 256
}

// Block is the prefix of the locators of the router's hosts.
func (r Router) Block() netip.Prefix { return netip.PrefixFrom(r.Locator.Addr(0), BlockBits) }

// LinkState says how much a link can be trusted.
type LinkState uint8

// The states of a link.
const (
	LinkUp     LinkState = iota
	LinkSilent           // nobody greets there: the last resort, for a router daemon that restarts still forwards
	LinkDown             // no carrier: not used
)

// A Link is one router's way to a neighbour, as it reports it. Both ends report; a link that its
// other end calls worse is as bad as that.
type Link struct {
	Port     string // of the reporting router
	Peer     string // router name; a peer that is no known router is ignored
	PeerPort string
	Via      netip.Addr // next hop on the port; of a plain router in between where there is one
	State    LinkState
	Cost     uint32 // 0 counts as 1
}

// HostState is what the first-hop router's probes say.
type HostState uint8

// The states of a host.
const (
	HostUp      HostState = iota
	HostSuspect           // probes unanswered: no new flows, undone by one answer
	HostGone              // carrier lost or silent for long: as if it had left, but it may come back
)

func (s HostState) String() string { return [...]string{"up", "suspect", "gone"}[s] }

// A Host is a host at one of its attachment points: hosts with several have a locator at each.
type Host struct {
	Name      string
	Locator   sid.Locator
	Router    string     // first hop
	Port      string     // of that router
	LinkLocal netip.Addr // of the host
	MAC       [6]byte    // of the host; zero: to be asked for on the link
	State     HostState
}
