package agent

import (
	"iter"
	"log/slog"
	"maps"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/sid"
)

// Hosts are those that a router is to probe, and what probes found of each last.
type Hosts struct {
	ports map[sid.Locator]string
	found map[sid.Locator]liveness.Change
}

// NewHosts are none.
func NewHosts() *Hosts {
	return &Hosts{map[sid.Locator]string{}, map[sid.Locator]liveness.Change{}}
}

// Probe takes note of a host that is to be probed at a port.
func (h *Hosts) Probe(l sid.Locator, port string) { h.ports[l] = port }

// Unprobe forgets a host.
func (h *Hosts) Unprobe(l sid.Locator) {
	delete(h.ports, l)
	delete(h.found, l)
}

// Probed reports whether a host is to be probed.
func (h *Hosts) Probed(l sid.Locator) bool {
	_, ok := h.ports[l]
	return ok
}

// Anew forgets what probes found: all hosts are probed anew.
func (h *Hosts) Anew() { clear(h.found) }

// All are the hosts with their ports. Unprobe and Probe may be called meanwhile.
func (h *Hosts) All() iter.Seq2[sid.Locator, string] { return maps.All(h.ports) }

// Locators are where the hosts are.
func (h *Hosts) Locators() iter.Seq[sid.Locator] { return maps.Keys(h.ports) }

// Found is what probes found of a host last, the zero value for nothing yet.
func (h *Hosts) Found(l sid.Locator) liveness.Change { return h.found[l] }

// Changed notes what probes found, and reports it in a session, which is nil while there is none. Hosts that were given
// up meanwhile are left out.
func (h *Hosts) Changed(s *Session, changes []liveness.Change, log *slog.Logger) {
	fresh := map[sid.Locator]liveness.Change{}
	for _, c := range changes {
		if h.Probed(c.Locator) {
			h.found[c.Locator], fresh[c.Locator] = c, c
			log.Info("host", "locator", c.Locator, "state", c.State, "missed", c.Missed, "by", c.Reason)
		}
	}
	tellHosts(s, fresh)
}

// Tell reports all that was found, to a controller that may have missed it.
func (h *Hosts) Tell(s *Session) { tellHosts(s, h.found) }

func tellHosts(s *Session, found map[sid.Locator]liveness.Change) {
	if s == nil || len(found) == 0 {
		return
	}
	states := &apiv1.HostStates{}
	for _, c := range found {
		states.Hosts = append(states.Hosts, &apiv1.HostState{Locator: uint64(c.Locator), State: string(c.State), Missed: c.Missed, Reason: c.Reason})
	}
	s.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Hosts{Hosts: states}})
}
