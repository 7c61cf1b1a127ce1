package hostd

import (
	"time"

	"scaffold.dev/scaffold/internal/host/places"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/wire"
)

// metrics are counted where things happen, from any goroutine.
type metrics struct {
	registry *obs.Metrics
	joins    obs.Counter
	flows    obs.Counter
	moves    obs.Histogram
	queries  obs.Counter
}

// moveBuckets are bounds in seconds.
var moveBuckets = []float64{.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}

func newMetrics() metrics {
	m := obs.NewMetrics("hostd")
	return metrics{
		registry: m,
		joins:    m.Counter("joins_total", "Sessions with the controller that began."),
		flows:    m.Counter("flow_events_total", "What happened to flows: moved (this end), peer_moved, failed_over, reset, stalled.", "kind"),
		moves:    m.Histogram("move_seconds", "From a change of this host's place until the last peer of a moved flow has answered.", moveBuckets),
		queries:  m.Counter("dns_queries_total", "Names that programs asked for, by the answer's code.", "rcode"),
	}
}

// Count counts what happened to flows.
func (m *metrics) Count(kind string, flows int) { m.flows.Add(uint64(max(0, flows)), kind) }

// Moved counts a move of this host's flows.
func (m *metrics) Moved(took time.Duration) { m.moves.Observe(took.Seconds()) }

// answered counts a query.
func (m *metrics) answered(rcode string) { m.queries.Inc(rcode) }

// export adds what is read from the loop when it is asked for.
func (d *daemon) export() {
	m := d.metrics.registry
	d.verdict.Export(m)
	m.CounterMap("edge_packets_total", "Packets that the edge dropped, answered or handed on, by reason.", "reason", d.counters)
	m.GaugeTable("joined", "1 while the controller is connected.", nil, d.reading(func(add obs.Add) {
		joined, _, _, _ := d.control.state()
		add(one(joined && d.control.Connected()))
	}))
	m.GaugeTable("flows", "Flows of this host at the last report.", nil, d.reading(func(add obs.Add) { add(float64(d.load.flows)) }))
	m.GaugeTable("registrations", "Triples that this host serves, by readiness.", []string{"state"}, d.reading(func(add obs.Add) {
		ready, all := d.serving.Count()
		add(float64(ready), "ready")
		add(float64(all-ready), "not ready")
	}))
	m.GaugeTable("uplink_up", "1 for an uplink that leads to a router.", []string{"interface"}, d.reading(func(add obs.Add) {
		for _, u := range d.uplinks.All() {
			add(one(u.Attachment() != nil), u.Name)
		}
	}))
	m.GaugeTable("certificate_seconds", "For how long a locator's certificate is still valid.", []string{"locator"}, d.reading(func(add obs.Add) {
		for _, p := range d.places.All() {
			if c, err := wire.ParseCertificate(p.Certificate); err == nil {
				add(time.Until(time.Unix(c.NotAfter, 0)).Seconds(), c.Locator.String())
			}
		}
	}))
	m.GaugeTable("certificate_left", "The share of a locator's certificate's time that is left, 1 to 0.", []string{"locator"}, d.reading(func(add obs.Add) {
		for _, p := range d.places.All() {
			if c, err := wire.ParseCertificate(p.Certificate); err == nil {
				add(places.CertificateLeft(c, time.Now()), c.Locator.String())
			}
		}
	}))
}

// reading runs of in the loop. What it adds is passed on outside: a scrape may have ended by then.
func (d *daemon) reading(of func(obs.Add)) func(obs.Add) {
	type value struct {
		v      float64
		labels []string
	}
	return func(add obs.Add) {
		var all []value
		if d.call(d.ctx, func() { of(func(v float64, labels ...string) { all = append(all, value{v, labels}) }) }) {
			for _, x := range all {
				add(x.v, x.labels...)
			}
		}
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
