package routerd

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/obs"
)

// A Status is what /status on the daemon's socket answers, as JSON.
type Status struct {
	Name       string             `json:"name"`
	Joined     bool               `json:"joined"`
	Locator    string             `json:"locator,omitempty"`
	Service    bool               `json:"service"`
	Generation uint64             `json:"generation"` // of the rules applied
	Adopted    bool               `json:"adopted"`    // rules of an earlier process
	Ports      []PortStatus       `json:"ports"`
	Neighbours []*apiv1.Neighbour `json:"neighbours"`
	Hosts      []HostStatus       `json:"hosts"`
	Routes     int                `json:"routes"`
	Services   int                `json:"services"`
	Instances  int                `json:"instances"`
	TableBytes uint64             `json:"table_bytes"`
	Counters   map[string]uint64  `json:"counters,omitempty"`
}

// A PortStatus is one port.
type PortStatus struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
}

// A HostStatus is what probing says of one host.
type HostStatus struct {
	Locator string `json:"locator"`
	Port    string `json:"port"`
	State   string `json:"state"` // "" before the first conclusion
	Missed  uint32 `json:"missed"`
}

// handler serves the status, metrics and health on the socket. Requests wait for the loop.
func (d *daemon) handler() http.Handler {
	m := obs.NewMetrics("routerd")
	m.CounterMap("packets_total", "First packets by what became of them.", "fate", d.counters)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", d.serveStatus)
	mux.Handle("/", obs.Handler(m, d.health, d.cfg.Profiles))
	return mux
}

// counters is safe for concurrent use.
func (d *daemon) counters() (map[string]uint64, error) {
	if d.resolver == nil {
		return nil, nil
	}
	return d.resolver.Counters()
}

func (d *daemon) serveStatus(w http.ResponseWriter, r *http.Request) {
	var s *Status
	if !d.call(func() { s = d.status() }) {
		http.Error(w, "the router daemon is ending", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(s)
}

func (d *daemon) status() *Status {
	s := &Status{Name: d.cfg.Name, Joined: d.session != nil, Service: d.cfg.Service, Generation: d.generation, Routes: len(d.routes.has)}
	if d.locator != 0 {
		s.Locator = d.locator.String()
	}
	for _, p := range d.ports {
		s.Ports = append(s.Ports, PortStatus{p.name, p.up})
	}
	slices.SortFunc(s.Ports, func(a, b PortStatus) int { return cmp.Compare(a.Name, b.Name) })
	s.Neighbours = d.neighbours.report(func(port string) bool { p := d.portNamed(port); return p != nil && p.up }).Links
	for l, port := range d.probing {
		c := d.hosts[l]
		s.Hosts = append(s.Hosts, HostStatus{l.String(), port, string(c.State), c.Missed})
	}
	slices.SortFunc(s.Hosts, func(a, b HostStatus) int { return cmp.Compare(a.Locator, b.Locator) })
	if d.resolver != nil {
		u, _ := d.resolver.Usage()
		s.Adopted, s.Services, s.Instances, s.TableBytes = d.resolver.Adopted(), u.Services, u.Instances, u.Bytes
		s.Counters, _ = d.resolver.Counters()
	}
	return s
}
