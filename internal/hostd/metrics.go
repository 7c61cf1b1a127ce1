package hostd

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/miekg/dns"

	"scaffold.dev/scaffold/internal/obs"
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

// count counts what happened to flows.
func (m *metrics) count(kind string, flows int) { m.flows.Add(uint64(max(0, flows)), kind) }

// answered counts a query.
func (m *metrics) answered(resp *dns.Msg) { m.queries.Inc(dns.RcodeToString[resp.Rcode]) }

// export adds what is read from the loop when it is asked for.
func (d *daemon) export() {
	m := d.metrics.registry
	m.CounterMap("edge_packets_total", "Packets that the edge dropped, answered or handed on, by reason.", "reason", d.counters)
	m.GaugeTable("joined", "1 while the controller is connected.", nil, d.reading(func(add obs.Add) {
		joined, _, _, _ := d.control.state()
		add(one(joined && d.control.out != nil))
	}))
	m.GaugeTable("flows", "Flows of this host at the last report.", nil, d.reading(func(add obs.Add) { add(float64(d.load.flows)) }))
	m.GaugeTable("registrations", "Triples that this host serves, by readiness.", []string{"state"}, d.reading(func(add obs.Add) {
		ready := 0
		for t, i := range d.serving.instances {
			if i.verdict(d.serving.known(t)).reason == "" {
				ready++
			}
		}
		add(float64(ready), "ready")
		add(float64(len(d.serving.instances)-ready), "not ready")
	}))
	m.GaugeTable("uplink_up", "1 for an uplink that leads to a router.", []string{"interface"}, d.reading(func(add obs.Add) {
		for _, u := range d.uplinks {
			add(one(u.attachment() != nil), u.name)
		}
	}))
	m.GaugeTable("certificate_seconds", "For how long a locator's certificate is still valid.", []string{"locator"}, d.reading(func(add obs.Add) {
		for i := range d.places {
			if c, err := wire.ParseCertificate(d.places[i].Certificate); err == nil {
				add(time.Until(time.Unix(c.NotAfter, 0)).Seconds(), c.Locator.String())
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

// health answers 503 with what keeps this host from serving: it is not in the network, or the controller does not answer.
func (d *daemon) health(w http.ResponseWriter, r *http.Request) {
	h := new(obs.Health)
	if !d.call(r.Context(), func() {
		joined, _, endpoint, trouble := d.control.state()
		switch {
		case joined && d.control.out != nil:
		case d.active() == nil:
			h.Set("uplink", errors.New(d.trouble()))
		default:
			h.Set("controller", fmt.Errorf("%s: %s", endpoint, trouble))
		}
	}) {
		h.Set("daemon", errors.New("it is ending"))
	}
	h.ServeHTTP(w, r)
}
