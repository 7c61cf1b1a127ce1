package obs

import "github.com/prometheus/client_golang/prometheus"

// A Counter only grows. Hold on to what With returns where packets or requests are counted often.
type Counter struct{ vec *prometheus.CounterVec }

// Counter makes or finds a counter; labels names what With must then give values for.
func (m *Metrics) Counter(name, help string, labels ...string) Counter {
	return Counter{register(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name(name), Help: help}, labels))}
}

// Add adds n, at least 0, to the counter with these label values.
func (c Counter) Add(n uint64, values ...string) { c.vec.WithLabelValues(values...).Add(float64(n)) }

// Inc adds one.
func (c Counter) Inc(values ...string) { c.vec.WithLabelValues(values...).Inc() }

// A Gauge goes up and down.
type Gauge struct{ vec *prometheus.GaugeVec }

// Gauge makes or finds a gauge.
func (m *Metrics) Gauge(name, help string, labels ...string) Gauge {
	return Gauge{register(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.name(name), Help: help}, labels))}
}

// Set sets the gauge with these label values.
func (g Gauge) Set(v float64, values ...string) { g.vec.WithLabelValues(values...).Set(v) }

// Forget removes one set of label values, as when the host that it names has left.
func (g Gauge) Forget(values ...string) { g.vec.DeleteLabelValues(values...) }

// A Histogram counts observations in buckets.
type Histogram struct{ vec *prometheus.HistogramVec }

// Histogram makes or finds a histogram whose buckets end at the given upper bounds; none means
// Prometheus' own, made for seconds.
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...string) Histogram {
	opts := prometheus.HistogramOpts{Name: m.name(name), Help: help, Buckets: buckets}
	return Histogram{register(m, prometheus.NewHistogramVec(opts, labels))}
}

// Observe counts one observation.
func (h Histogram) Observe(v float64, values ...string) { h.vec.WithLabelValues(values...).Observe(v) }
