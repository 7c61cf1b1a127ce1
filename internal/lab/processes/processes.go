package processes

import (
	"os"

	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// A Config is what the programs of a lab have in common.
type Config struct {
	Plan    *plan.Plan
	Dir     state.Dir
	Root    cgroups.Group               // of the lab; nodes' are below, and those of programs below these
	Binary  string                      // the scaffold that the lab is made of
	Besides func(n *plan.Node) []string // what programs of a node see besides PATH and the names of lab and node; nil for nothing
}

// Processes are those of one lab, whoever started them. How one ended is known of those that were started here.
type Processes struct {
	Config
	exits exits
}

// New starts nothing.
func New(c Config) *Processes { return &Processes{Config: c} }

// Prepare makes the lab's cgroup, and the directories and files of its nodes.
func (p *Processes) Prepare() error {
	if err := p.Root.Make(); err != nil {
		return err
	}
	if err := p.writeHosts(); err != nil {
		return err
	}
	for _, n := range p.Plan.Spaces() {
		if err := os.MkdirAll(p.Dir.Node(n.Name), 0o755); err != nil {
			return err
		}
		if !n.Kind.IsHost() {
			continue
		}
		if err := p.writeEtc(n); err != nil {
			return err
		}
	}
	return nil
}

// Group is the cgroup of a node, or of one of its programs.
func (p *Processes) Group(node, program string) cgroups.Group {
	if program == "" {
		return p.Root.Child(node)
	}
	return p.Root.Child(node).Child(program)
}
