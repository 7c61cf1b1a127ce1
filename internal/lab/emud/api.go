package emud

import (
	"time"

	"scaffold.dev/scaffold/emu"
)

// A LinkState is a link at this moment.
type LinkState struct {
	Link   int              `json:"link"`
	Ends   [2]string        `json:"ends"`
	Inside [2]bool          `json:"inside"`           // the end is a router of the engine
	Causes []string         `json:"causes,omitempty"` // for which it is down
	Lines  [2]emu.LineStats `json:"lines"`            // Lines[0] from Ends[0] to Ends[1]
}

// A RouterState is a router at this moment.
type RouterState struct {
	Name     string             `json:"name"`
	Program  string             `json:"program"`
	Shard    int                `json:"shard"` // the engine's thread that it belongs to
	Down     bool               `json:"down,omitempty"`
	Failure  string             `json:"failure,omitempty"` // of its program, which panicked
	Ports    []PortState        `json:"ports"`
	Counters emu.RouterCounters `json:"counters"`
	Feed     *FeedState         `json:"feed,omitempty"` // where its routes come from, if not from here
}

// A FeedState says what a router was told by the daemons that compute its routes.
type FeedState struct {
	Kind    string    `json:"kind"`
	Routes  int       `json:"routes"`          // that it has of them
	Changes int       `json:"changes"`         // of routes, so far
	Last    time.Time `json:"last,omitzero"`   // when the last change came
	Error   string    `json:"error,omitempty"` // the last
}

// A PortState is one port of a router.
type PortState struct {
	Port int    `json:"port"`
	Far  string `json:"far"` // the node at the other end
	Link int    `json:"link"`
	Down bool   `json:"down,omitempty"`
}

// A HandlerState is what can be read or written of a router.
type HandlerState struct {
	Name  string `json:"name"`
	Doc   string `json:"doc"`
	Read  bool   `json:"read"`
	Write bool   `json:"write"`
}

// Causes for which links are down. A link carries packets when it has none.
const (
	CauseFail      = "fail"
	CauseCut       = "cut"
	CauseUnplug    = "unplug"
	CausePartition = "partition"
)

// A Fault is something that breaks, or is mended again.
type Fault struct {
	Link   *int   `json:"link,omitempty"`   // a link, for a cause
	Cause  string `json:"cause,omitempty"`  // of a link; CauseFail where there is none
	Router string `json:"router,omitempty"` // a router, or one of its ports
	Port   *int   `json:"port,omitempty"`
	Down   bool   `json:"down"`
}

// Faults are changes that take place at once; computed routes follow them after the time of convergence.
type Faults struct {
	Changes []Fault `json:"changes"`
}

// Routes say whether computed routes have followed the faults.
type Routes struct {
	Faults    int           `json:"faults"`    // changes so far
	Installed int           `json:"installed"` // of them known to the routes
	Changed   int           `json:"changed"`   // routes that the last computation changed
	Took      time.Duration `json:"took_ns"`   // that computation, with the change of all tables
	Error     string        `json:"error,omitempty"`
}

// A Swap gives a router another program.
type Swap struct {
	Program    string            `json:"program"`
	Parameters map[string]string `json:"parameters,omitempty"`
}
