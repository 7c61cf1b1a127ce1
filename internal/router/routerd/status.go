package routerd

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/internal/trust"
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
	TableNodes int                `json:"table_nodes"` // entries of the table of instances
	TableRoom  int                `json:"table_room"`  // and how many there can be
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

// local is what a router's daemon offers of the API of daemons.
type local struct {
	apiv1connect.UnimplementedLocalHandler
	d *daemon
}

// RotateKey gets the router another key.
func (l *local) RotateKey(ctx context.Context, _ *connect.Request[apiv1.RotateKeyRequest]) (*connect.Response[apiv1.RotateKeyResponse], error) {
	key, err := l.d.stream.Rotate(ctx)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.RotateKeyResponse{Key: key, Name: l.d.cfg.Name, Role: string(trust.Router)}), nil
}

// handler serves the status, metrics and health on the socket. Requests wait for the loop.
func (d *daemon) handler(watch http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", d.serveStatus)
	mux.Handle(apiv1connect.NewLocalHandler(&local{d: d}))
	mux.Handle("/", watch)
	return mux
}

// metrics serves metrics and health.
func (d *daemon) metrics() http.Handler {
	m := obs.NewMetrics("routerd")
	m.CounterMap("packets_total", "First packets by what became of them.", "fate", d.counters)
	m.CounterMap("neighbours_refused_total", "HELLOs and LINKs of routers that did not count, by reason.", "why", d.neighboursRefused)
	d.gauges = gauges{
		hosts:     m.Gauge("hosts", "Hosts on this router by what probes say.", "state"),
		links:     m.Gauge("links", "Links to other routers by state.", "state"),
		routes:    m.Gauge("routes", "Routes in the kernel."),
		services:  m.Gauge("services", "Services in the kernel's tables."),
		instances: m.Gauge("instances", "Instances in the kernel's tables."),
		bytes:     m.Gauge("table_bytes", "Kernel memory of the tables."),
		full:      m.Gauge("table_full_ratio", "Used part of the table of instances; from 1 on what is new is refused."),
		joined:    m.Gauge("joined", "1 while the controller is connected."),
		rules:     m.Gauge("generation", "Generation of the rules applied."),
	}
	d.verdict.Export(m)
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", d.verdict)
	mux.Handle("/", obs.Handler(m, new(obs.Health), d.cfg.Profiles))
	return mux
}

// gauges are set by the loop, each second.
type gauges struct{ hosts, links, routes, services, instances, bytes, full, joined, rules obs.Gauge }

func (d *daemon) measure() {
	s := d.status()
	g := d.gauges
	hosts := map[string]int{"unknown": 0, string(liveness.Up): 0, string(liveness.Suspect): 0, string(liveness.Gone): 0}
	for _, h := range s.Hosts {
		hosts[cmp.Or(h.State, "unknown")]++
	}
	links := map[string]int{"up": 0, "down": 0}
	for _, l := range s.Neighbours {
		if l.Up {
			links["up"]++
		} else {
			links["down"]++
		}
	}
	setEach(g.hosts, hosts)
	setEach(g.links, links)
	g.routes.Set(float64(s.Routes))
	g.services.Set(float64(s.Services))
	g.instances.Set(float64(s.Instances))
	g.bytes.Set(float64(s.TableBytes))
	g.full.Set(float64(s.TableNodes) / float64(max(s.TableRoom, 1)))
	g.rules.Set(float64(s.Generation))
	g.joined.Set(0)
	if s.Joined {
		g.joined.Set(1)
	}
}

func setEach(g obs.Gauge, counts map[string]int) {
	for state, n := range counts {
		g.Set(float64(n), state)
	}
}

// counters is safe for concurrent use.
func (d *daemon) counters() (map[string]uint64, error) {
	if d.resolver == nil {
		return nil, nil
	}
	return d.resolver.Counters()
}

// neighboursRefused are HELLOs and LINKs that did not count.
func (d *daemon) neighboursRefused() (map[string]uint64, error) {
	var counts map[string]uint64
	if !d.call(func() {
		counts = make(map[string]uint64, len(agent.Refusals))
		for _, why := range agent.Refusals {
			counts[why] = d.neighbours.Refused()[why]
		}
	}) {
		return nil, nil
	}
	return counts, nil
}

func (d *daemon) serveStatus(w http.ResponseWriter, r *http.Request) {
	var s *Status
	if !d.call(func() { s = d.status() }) {
		http.Error(w, "the router daemon is ending", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(s) //nolint:errcheck // who asked went away
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
	s.Neighbours = d.neighbours.Report(func(port string) bool { p := d.portNamed(port); return p != nil && p.up }).Links
	for l, port := range d.hosts.All() {
		c := d.hosts.Found(l)
		s.Hosts = append(s.Hosts, HostStatus{l.String(), port, string(c.State), c.Missed})
	}
	slices.SortFunc(s.Hosts, func(a, b HostStatus) int { return cmp.Compare(a.Locator, b.Locator) })
	if d.resolver != nil {
		u, _ := d.resolver.Usage()
		s.Adopted, s.Services, s.Instances, s.TableBytes = d.resolver.Adopted(), u.Services, u.Instances, u.Bytes
		s.TableNodes, s.TableRoom = u.Nodes, u.Room
		s.Counters, _ = d.resolver.Counters()
	}
	return s
}
