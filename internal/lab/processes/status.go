package processes

// Status is one daemon or program with all its processes.
type Status struct {
	Name    string `json:"name"`
	Service string `json:"service,omitempty"`
	State   string `json:"state"` // "running", "stopped" (by a signal), "down"
	PIDs    []int  `json:"pids"`
	Log     string `json:"log"`
}

// Status looks at a program or daemon of a node; a service is told as it is.
func (p *Processes) Status(node, name, service string) Status {
	state, pids := p.State(node, name)
	return Status{Name: name, Service: service, State: state, PIDs: pids, Log: p.Dir.Log(node, name)}
}
