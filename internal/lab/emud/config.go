package emud

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
)

// A Config is all that the engine makes.
type Config struct {
	Name    string     `json:"name"`             // of the lab
	Shards  int        `json:"shards,omitempty"` // threads; 0: the engine chooses
	Memory  emu.Memory `json:"memory"`
	Routers []Router   `json:"routers,omitempty"`
	Links   []Link     `json:"links"`
	Routing Routing    `json:"routing"`
}

// A Router is one inside the engine.
type Router struct {
	Name       string            `json:"name"`
	Program    string            `json:"program"`
	Parameters map[string]string `json:"parameters,omitempty"`
	FIB        string            `json:"fib,omitempty"` // "class" or "lpm"
	Core       int               `json:"core"`          // thread, -1 for any
	Own        []netip.Addr      `json:"own"`           // its addresses: sources of ICMP errors
	LinkLocal  netip.Addr        `json:"link_local"`    // on all its ports
	Static     []Static          `json:"static,omitempty"`
	Feed       *Feed             `json:"feed,omitempty"`
}

// A Static route leads out of a port; one that has none loses everything.
type Static struct {
	To   netip.Prefix `json:"to"`
	Port *int         `json:"port,omitempty"`
}

// A Feed says where the routes of a router come from, if not from here.
type Feed struct {
	Kind  string   `json:"kind"`  // "fpm": FRR's forwarding-plane manager, "kernel": the tables of the namespace
	Netns string   `json:"netns"` // path
	Ports []string `json:"ports"` // names of the interfaces there, by number of the port
}

// A Link is one whose ends are in the engine or are interfaces that it makes.
type Link struct {
	Ends   [2]End        `json:"ends"`
	Params [2]emu.Params `json:"params"` // Params[0] from Ends[0] to Ends[1]
}

// An End of a link is a router's next port, or an interface.
type End struct {
	Node   string         `json:"node"`             // the name that people know it by
	Router bool           `json:"router,omitempty"` // the node is one of Routers
	Edge   *emu.End       `json:"edge,omitempty"`   // the interface; of a router, its own side of the port in its namespace
	Addrs  []netip.Prefix `json:"addrs,omitempty"`  // of a router's port, besides the link-local one
	MTU    int            `json:"mtu,omitempty"`
}

// Routing says what paths are computed.
type Routing struct {
	Computed    bool          `json:"computed"`
	ECMP        bool          `json:"ecmp"`
	Convergence time.Duration `json:"convergence_ns"` // from a fault until routes know of it
	Nodes       []Place       `json:"nodes,omitempty"`
	Edges       []Hop         `json:"edges,omitempty"`
}

// A Place is a node of the network as routing sees it, inside the engine or not.
type Place struct {
	Name     string         `json:"name"`
	Ends     bool           `json:"ends,omitempty"` // it forwards nothing
	Announce []netip.Prefix `json:"announce,omitempty"`
}

// A Hop joins two places, by a link of the engine or another.
type Hop struct {
	Ends [2]int `json:"ends"` // numbers of Places
	Cost int    `json:"cost"`
	Link int    `json:"link"` // number of the engine's link, -1 for another one
}
