package lab

import (
	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/links"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/processes"
)

// Status is what a lab is at this moment.
type Status struct {
	Name       string         `json:"name"`
	File       string         `json:"file"`
	Phase      string         `json:"phase"`
	Dir        string         `json:"dir"`
	Controller string         `json:"controller"` // "" in a network of plain IP
	Nodes      []NodeStatus   `json:"nodes"`
	Links      []links.Status `json:"links"`
}

// NodeStatus is one node with its processes.
type NodeStatus struct {
	Name      string             `json:"name"`
	Kind      string             `json:"kind"`
	Namespace string             `json:"namespace"`         // "" for a router inside the engine
	Address   string             `json:"address,omitempty"` // on the management network
	LinkLocal string             `json:"link_local"`
	State     string             `json:"state,omitempty"`   // of a router inside the engine: "up", "failed", or what its program panicked with
	Program   string             `json:"program,omitempty"` // that it runs there
	Processes []processes.Status `json:"processes"`
}

// Status looks at processes and links; nothing of it is remembered.
func (l *Lab) Status() (*Status, error) {
	s := &Status{Name: l.File.Name, File: l.File.Path, Dir: l.Dir(), Controller: l.Controller()}
	state, err := l.dir.Read()
	if err != nil {
		return nil, err
	}
	if state != nil {
		s.Phase = state.Phase
	}
	routers := l.engine.States()
	for _, n := range l.plan.Nodes {
		status := nodeStatus(l.procs, n)
		if r, ok := routers[n.Name]; ok || n.Kind.InEngine() {
			status.State, status.Program = routerState(r), r.Program
		}
		s.Nodes = append(s.Nodes, status)
	}
	s.Links = l.links.Status()
	return s, nil
}

func routerState(r emud.RouterState) string {
	switch {
	case r.Name == "":
		return "down"
	case r.Down:
		return "failed"
	case r.Failure != "":
		return r.Failure
	}
	return "up"
}

func nodeStatus(procs *processes.Processes, n *plan.Node) NodeStatus {
	s := NodeStatus{Name: n.Name, Kind: string(n.Kind), Namespace: n.Netns, LinkLocal: n.LinkLocal.String(), Processes: []processes.Status{}}
	switch {
	case n.Kind == file.Router && n.Service:
		s.Kind = "service router"
	case n.Kind == file.Switch && n.Service:
		s.Kind = "service switch"
	}
	if n.Management.IsValid() {
		s.Address = n.Management.String()
	}
	if d := n.Daemon(); d != "" {
		s.Processes = append(s.Processes, procs.Status(n.Name, d, ""))
	}
	if b := n.Beside(); b != "" {
		s.Processes = append(s.Processes, procs.Status(n.Name, b, ""))
	}
	for _, p := range n.Programs {
		s.Processes = append(s.Processes, procs.Status(n.Name, p.Name, p.Service))
	}
	return s
}
