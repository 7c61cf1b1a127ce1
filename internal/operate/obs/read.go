package obs

import "github.com/prometheus/client_golang/prometheus"

// read exports what is asked at each scrape. Of two of one name the later counts: whoever is asked begins anew within a
// process, as a controller does that leads again.
func (m *Metrics) read(c prometheus.Collector) {
	m.registry.Unregister(c)
	m.registry.MustRegister(c)
}

// GaugeFunc exports what read returns at each scrape.
func (m *Metrics) GaugeFunc(name, help string, read func() float64) {
	m.read(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: m.name(name), Help: help}, read))
}

// CounterFunc is GaugeFunc for what only grows.
func (m *Metrics) CounterFunc(name, help string, read func() float64) {
	m.read(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: m.name(name), Help: help}, read))
}

// CounterMap exports a family of counters that somebody else keeps, as the kernel programs keep their
// drops by reason: read is asked at each scrape, its keys become the values of label. An error makes
// this one family absent from the scrape, never the others.
func (m *Metrics) CounterMap(name, help, label string, read func() (map[string]uint64, error)) {
	m.read(counterMap{prometheus.NewDesc(m.name(name), help, []string{label}, nil), read})
}

// CounterTable is CounterMap for counters of several labels: read calls add for each. It is asked at each
// scrape, so what is not there any more is not exported any more.
func (m *Metrics) CounterTable(name, help string, labels []string, read func(add Add)) {
	m.read(tableOf{prometheus.NewDesc(m.name(name), help, labels, nil), prometheus.CounterValue, read})
}

// GaugeTable is CounterTable for what goes up and down.
func (m *Metrics) GaugeTable(name, help string, labels []string, read func(add Add)) {
	m.read(tableOf{prometheus.NewDesc(m.name(name), help, labels, nil), prometheus.GaugeValue, read})
}

// Add takes one value and the values of its labels.
type Add func(value float64, labels ...string)

type tableOf struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(Add)
}

func (c tableOf) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

func (c tableOf) Collect(ch chan<- prometheus.Metric) {
	c.read(func(v float64, labels ...string) { ch <- prometheus.MustNewConstMetric(c.desc, c.kind, v, labels...) })
}

type counterMap struct {
	desc *prometheus.Desc
	read func() (map[string]uint64, error)
}

func (c counterMap) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

func (c counterMap) Collect(ch chan<- prometheus.Metric) {
	values, err := c.read()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.desc, err)
		return
	}
	for key, n := range values {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), key)
	}
}
