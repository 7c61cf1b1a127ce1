package plan

import "scaffold.dev/scaffold/internal/lab/file"

// Startable are the names of what a node can run: daemons and programs.
func (n *Node) Startable() (names []string) {
	if d := n.Daemon(); d != "" {
		names = append(names, d)
	}
	if n.Kind == file.Switch {
		names = append(names, file.OVSDB)
	}
	for _, p := range n.Programs {
		names = append(names, p.Name)
	}
	return names
}
