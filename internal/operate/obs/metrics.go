package obs

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is one daemon's set of metrics. Every name it exports begins with "scaffold_<daemon>_".
// Making the same metric twice gives the same one; making it with another type or other labels
// panics, for that is a mistake in the program. Its methods may be called from any goroutine.
type Metrics struct {
	registry *prometheus.Registry
	daemon   string
}

// NewMetrics returns the metrics of a daemon ("hostd", "routerd", "controld"), with those of the Go
// runtime and the process already in it.
func NewMetrics(daemon string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), daemon: daemon}
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Part returns metrics of another name that are exported with these, for a part of the same process.
func (m *Metrics) Part(name string) *Metrics { return &Metrics{registry: m.registry, daemon: name} }

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

func (m *Metrics) name(short string) string {
	return prometheus.BuildFQName("scaffold", m.daemon, short)
}

// register adds c, or returns what stands under its name already.
func register[C prometheus.Collector](m *Metrics, c C) C {
	err := m.registry.Register(c)
	if err == nil {
		return c
	}
	if have, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := have.ExistingCollector.(C); ok {
			return same
		}
	}
	panic(fmt.Sprintf("obs: %v", err))
}
