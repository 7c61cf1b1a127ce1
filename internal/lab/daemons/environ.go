package daemons

import (
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// Environ is what programs in a node see of the node's daemon.
func Environ(d state.Dir, n *plan.Node) []string {
	switch {
	case n.Kind.IsHost() && !n.Bare:
		return []string{"SCAFFOLD_API=unix:" + d.Socket(n), "SCAFFOLD_HOSTD=" + d.Socket(n)}
	case n.Kind == file.Controller:
		return []string{"SCAFFOLD_API=unix:" + d.Socket(n)}
	}
	return nil
}
