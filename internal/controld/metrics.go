package controld

import "scaffold.dev/scaffold/internal/obs"

// metrics are counted by the loop; scrapes read them from other goroutines.
type metrics struct {
	registry      *obs.Metrics
	events        obs.Counter
	orders        obs.Counter
	dropped       obs.Counter
	snapshots     obs.Counter
	storeErrors   obs.Counter
	refusedEvents obs.Counter
	refusedDrains obs.Counter
	hosts         obs.Gauge
	routers       obs.Gauge
	services      obs.Gauge
	instances     obs.Gauge
	generation    obs.Gauge
	pending       obs.Gauge
}

// newMetrics makes the daemon's metrics in a registry, nil: its own.
func newMetrics(m *obs.Metrics) metrics {
	if m == nil {
		m = obs.NewMetrics("controld")
	}
	return metrics{
		registry:      m,
		events:        m.Counter("events_total", "Events by kind.", "kind"),
		orders:        m.Counter("router_orders_total", "Rules sent to routers, in messages."),
		dropped:       m.Counter("streams_dropped_total", "Streams ended because the peer did not read."),
		snapshots:     m.Counter("router_snapshots_total", "Full sets of rules sent to routers."),
		storeErrors:   m.Counter("store_failures_total", "Times that saving began to fail."),
		refusedEvents: m.Counter("host_events_refused_total", "Events of hosts that were too many, too long or of kinds that are not theirs."),
		refusedDrains: m.Counter("drains_refused_total", "Drains of a service's last instance that were asked for without force."),
		hosts:         m.Gauge("hosts", "Hosts by state.", "state"),
		routers:       m.Gauge("routers", "Routers that are connected."),
		services:      m.Gauge("services", "Services that exist."),
		instances:     m.Gauge("instances", "Instances that are registered."),
		generation:    m.Gauge("generation", "Generation of the rules."),
		pending:       m.Gauge("state_pending", "Records that are not saved yet."),
	}
}

func (m *metrics) update(n *network) {
	services, instances := n.plan.Count()
	m.services.Set(float64(services))
	m.instances.Set(float64(instances))
	m.generation.Set(float64(n.generation))
	m.pending.Set(float64(n.saver.waiting()))
	m.routers.Set(float64(n.connectedRouters()))
	states := map[string]int{"up": 0, "joining": 0, "suspect": 0, "gone": 0}
	for _, h := range n.hosts {
		if h.Here {
			states[n.stateText(h)]++
		}
	}
	for state, count := range states {
		m.hosts.Set(float64(count), state)
	}
}
