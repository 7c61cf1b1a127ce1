package plan

// Startable are the names of what a node can run: daemons and programs.
func (n *Node) Startable() (names []string) {
	if d := n.Daemon(); d != "" {
		names = append(names, d)
	}
	if b := n.Beside(); b != "" {
		names = append(names, b)
	}
	for _, p := range n.Programs {
		names = append(names, p.Name)
	}
	return names
}
