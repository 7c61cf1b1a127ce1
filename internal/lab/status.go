package lab

import (
	"context"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/emud"
)

// Status is what a lab is at this moment.
type Status struct {
	Name       string       `json:"name"`
	File       string       `json:"file"`
	Phase      string       `json:"phase"`
	Dir        string       `json:"dir"`
	Controller string       `json:"controller"` // "" in a network of plain IP
	Nodes      []NodeStatus `json:"nodes"`
	Links      []LinkStatus `json:"links"`
}

// NodeStatus is one node with its processes.
type NodeStatus struct {
	Name      string          `json:"name"`
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`         // "" for a router inside the engine
	Address   string          `json:"address,omitempty"` // on the management network
	LinkLocal string          `json:"link_local"`
	State     string          `json:"state,omitempty"`   // of a router inside the engine: "up", "failed", or what its program panicked with
	Program   string          `json:"program,omitempty"` // that it runs there
	Processes []ProcessStatus `json:"processes"`
}

// ProcessStatus is one daemon or program with all its processes.
type ProcessStatus struct {
	Name    string `json:"name"`
	Service string `json:"service,omitempty"`
	State   string `json:"state"` // "running", "stopped" (by a signal), "down"
	PIDs    []int  `json:"pids"`
	Log     string `json:"log"`
}

// LinkStatus is one link.
type LinkStatus struct {
	Ends       [2]string `json:"ends"`
	Interfaces [2]string `json:"interfaces"`
	State      string    `json:"state"` // "up", "cut" (loses everything), "unplugged", "failed", "partitioned", "down"
	Rate       uint64    `json:"rate_bit_s,omitempty"`
	MTU        int       `json:"mtu"`

	Emulated *[2]string `json:"emulated,omitempty"` // present parameters, there and back; nil for a veth pair
}

// Status looks at processes and links; nothing of it is remembered.
func (l *Lab) Status() (*Status, error) {
	s := &Status{Name: l.File.Name, File: l.File.Path, Dir: l.Dir(), Controller: l.Controller()}
	state, err := l.place.read()
	if err != nil {
		return nil, err
	}
	if state != nil {
		s.Phase = state.Phase
	}
	routers := l.routerStates()
	for _, n := range l.plan.Nodes {
		status := l.nodeStatus(n)
		if r, ok := routers[n.Name]; ok || n.Kind.engine() {
			status.State, status.Program = routerState(r), r.Program
		}
		s.Nodes = append(s.Nodes, status)
	}
	w := newWirer()
	defer w.close()
	emulated, _ := l.Emulated() // without the engine its links are down, which is what is shown
	for i, c := range l.plan.Cable {
		s.Links = append(s.Links, LinkStatus{
			Ends: c.Ends, Interfaces: [2]string{c.Ports[0].Dev, c.Ports[1].Dev},
			State: linkState(w, c, emulated.cable(i)), Rate: c.Rate, MTU: c.MTU, Emulated: emulated.params(i),
		})
	}
	return s, nil
}

// routerStates are those of the routers inside the engine; none if that does not answer.
func (l *Lab) routerStates() map[string]emud.RouterState {
	all := map[string]emud.RouterState{}
	client := l.Engine()
	if client == nil {
		return all
	}
	list, _ := client.Routers(context.Background()) // without the engine they are down, which is what is shown
	for _, r := range list {
		all[r.Name] = r
	}
	return all
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

func (l *Lab) nodeStatus(n *PlanNode) NodeStatus {
	s := NodeStatus{Name: n.Name, Kind: string(n.Kind), Namespace: n.Netns, LinkLocal: n.LinkLocal.String(), Processes: []ProcessStatus{}}
	switch {
	case n.Kind == Router && n.Service:
		s.Kind = "service router"
	case n.Kind == Switch && n.Service:
		s.Kind = "service switch"
	}
	if n.Management.IsValid() {
		s.Address = n.Management.String()
	}
	if d := n.daemon(); d != "" {
		s.Processes = append(s.Processes, l.processStatus(n, d, ""))
	}
	if n.Kind == Switch {
		s.Processes = append(s.Processes, l.processStatus(n, ovsdb, ""))
	}
	for _, p := range n.Programs {
		s.Processes = append(s.Processes, l.processStatus(n, p.Name, p.Service))
	}
	return s
}

func (l *Lab) processStatus(n *PlanNode, name, service string) ProcessStatus {
	s := ProcessStatus{Name: name, Service: service, State: "down", Log: l.LogPath(n.Name, name)}
	s.PIDs = l.cgroup(n.Name).child(name).pids()
	sort.Ints(s.PIDs)
	for _, pid := range s.PIDs {
		if s.State = processState(pid); s.State == "running" {
			break
		}
	}
	return s
}

// processState reads the letter after the last bracket of /proc/PID/stat.
func processState(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	after := string(text[strings.LastIndexByte(string(text), ')')+1:])
	switch {
	case err != nil || len(after) < 2:
		return "down"
	case after[1] == 'T':
		return "stopped"
	}
	return "running"
}

// states of links are called after what the engine loses packets for, the first that holds.
var states = []struct{ cause, state string }{
	{emud.CauseFail, "failed"}, {emud.CauseUnplug, "unplugged"}, {emud.CausePartition, "partitioned"}, {emud.CauseCut, "cut"},
}

// linkState looks at a link, of which e is what the engine knows, nil for one that is none of the engine's.
func linkState(w *wirer, c *PlanLink, e *EmulatedLink) string {
	if c.Emulated != nil && e == nil {
		return "down" // the engine is gone
	}
	for _, s := range states {
		if e != nil && slices.Contains(e.Causes, s.cause) {
			return s.state
		}
	}
	state := "up"
	for i, n := range c.Nodes {
		if !n.Kind.namespace() {
			continue
		}
		err := w.change(n.Netns, c.Ports[i].Dev, "look", func(h *netlink.Handle, link netlink.Link) error {
			switch {
			case link.Attrs().RawFlags&unix.IFF_UP == 0:
				state = "unplugged"
			case isCut(h, link) && state == "up":
				state = "cut"
			}
			return nil
		})
		if err != nil {
			return "down"
		}
	}
	return state
}
