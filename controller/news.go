package controller

import "net/netip"

// A Switch is an OpenFlow switch that drives one router's data plane.
type Switch struct {
	Name       string
	Datapath   uint64     // datapath id
	Version    string     // of OpenFlow, as "1.5"
	Up         bool       // connected; false is the last that is heard of it
	MAC        [6]byte    // as a router: what it sends comes from here
	LinkLocal  netip.Addr // as a router, on each of its ports
	Locator    netip.Addr // as a router; invalid until the controller gave one
	Service    bool       // as a router: it resolves first packets
	Ports      []Port     // by number
	Generation uint64     // of the rules that it holds
}

// A Port of a switch.
type Port struct {
	Name   string
	Number PortNumber
	MAC    [6]byte
	Up     bool // administratively, and with carrier
}

// A Host is one that joined.
type Host struct {
	Name   string
	State  string // "up", "joining", "suspect", "gone"
	Places []Place
}

// A Place is where a host hangs on the network.
type Place struct {
	Locator netip.Prefix
	Router  string // a switch or a Linux router
	Port    string
}

// A Link is one router's way to a neighbour.
type Link struct {
	Router, Port   string
	Peer, PeerPort string
	Via            netip.Addr // next hop on the port
	MAC            [6]byte    // of the next hop, where it is known
	Up             bool
	Cost           uint32 // 0 counts as 1
	Reason         string // why it is not up: "carrier", "hello"
}

// A Path is a way through the network.
type Path struct {
	Hops []Hop // routers in order, the first hop's first
	Cost uint64
}

// A Hop is a router that a path goes through.
type Hop struct {
	Router  string
	In, Out string // ports; "" where the path begins or ends at the router itself
}
