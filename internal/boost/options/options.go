// Package options has what an agent of boost is told about how it carries, as its file and a lab's have it: which control, how many
// connections, what share of a path. It knows no socket: what the file leaves open the daemon chooses by its kernel.
package options

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
	"scaffold.dev/scaffold/internal/yamlfile"
)

// Options are how an agent carries.
type Options struct {
	Memory      int         // MiB of each trunk, each way
	Connections Connections // of each path
	Control     string      // congestion control between agents: bbr or cubic; "": the first that the kernel has
	Protection  frame.Protection
	Strategy    string // "": by the number of paths
	Shape       tune.Settings
}

// Congestion controls that a file may name.
const (
	BBR   = "bbr"
	CUBIC = "cubic"
)

// Connections is how many data connections a path has: First of them, or as many as the agents find, from there to Most; and
// up to Open where the other agent wants them, or where BBR finds that something on the way limits each by itself.
type Connections struct{ First, Most, Open int }

// most is how many agents find. More than 32 have 70 MB of buffers at each agent, for each other one.
const most = 32

var (
	// Fixed is how many there are with BBR, of which one brings what several do: four outlive the death of any, spread over
	// queues and routes of equal cost, and are the flows that `fair` has beside others. The other agent may have no BBR, and what
	// is on the way may limit each connection by itself.
	Fixed = Connections{4, 4, most}
	// Found is without it. What several connections of CUBIC bring depends on loss, and too many take from others.
	Found = Connections{1, most, most}
)

func (c Connections) String() string {
	if c.Most > c.First {
		return fmt.Sprintf("auto, %d to %d", c.First, c.Most)
	}
	if c.Open > c.First {
		return fmt.Sprintf("%d, up to %d where the other agent wants more or each is limited", c.First, c.Open)
	}
	return fmt.Sprint(c.First)
}

const (
	mostMemory      = 64 << 10 // MiB
	mostConnections = frame.MaxConnections
	mostWeight      = 64
	mostLimit       = 1_000_000 // Mbit/s
)

// Default is what a file says that says nothing.
func Default() Options { return Options{Memory: 64, Protection: frame.Sealed} }

// Fields are the keys of a file, which say o.
func Fields(r *yamlfile.Reader, o *Options) yamlfile.Fields {
	return yamlfile.Fields{
		"memory":      func(n *yamlfile.Node) { o.Memory = r.Integer(n, "memory, in MiB", 1, mostMemory) },
		"connections": func(n *yamlfile.Node) { o.Connections = connections(r, n) },
		"control":     func(n *yamlfile.Node) { o.Control = r.OneOf(n, "control", BBR, CUBIC) },
		"protect":     func(n *yamlfile.Node) { o.Protection = protection(r, n) },
		"strategy":    func(n *yamlfile.Node) { o.Strategy = r.OneOf(n, "strategy", stripe.Strategies...) },
		"share": func(n *yamlfile.Node) {
			o.Shape.Share = tune.Share(max(slices.Index(tune.Shares, r.OneOf(n, "share", tune.Shares...)), 0))
		},
		"weight": func(n *yamlfile.Node) { o.Shape.Weight = float64(r.Integer(n, "weight", 1, mostWeight)) },
		"limit":  func(n *yamlfile.Node) { o.Shape.Limit = Limit(r, n) },
	}
}

// Limit reads what a path takes at most, in bytes a second.
func Limit(r *yamlfile.Reader, n *yamlfile.Node) float64 {
	return float64(r.Integer(n, "limit, in Mbit/s", 1, mostLimit)) * 1e6 / 8
}

// connections reads a number, or that the agents are to find it.
func connections(r *yamlfile.Reader, n *yamlfile.Node) Connections {
	if yamlfile.IsValue(n) && n.Value == "auto" {
		return Found
	}
	v, err := strconv.Atoi(n.Value)
	if !yamlfile.IsValue(n) || err != nil || v < 1 || v > mostConnections {
		r.At(n, "connections: expected a number from 1 to %d, or auto, found %s", mostConnections, yamlfile.KindOf(n))
		return Found
	}
	return Connections{v, v, v}
}

func protection(r *yamlfile.Reader, n *yamlfile.Node) frame.Protection {
	p, err := frame.ParseProtection(r.Text(n, "protect"))
	if err == nil && p == frame.None {
		err = errors.New("frames without protection are for open networks, which a file of keys is not")
	}
	if err != nil {
		r.At(n, "protect: %v", err)
	}
	return p
}
