package controld

import (
	"context"
	"path"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/operate/obs"
)

// metrics are counted where things happen; what can be read from the state is read when it is asked for (figures.go).
type metrics struct {
	registry       *obs.Metrics
	events         obs.Counter
	orders         obs.Counter
	dropped        obs.Counter
	snapshots      obs.Counter
	storeErrors    obs.Counter
	refusedEvents  obs.Counter
	refusedDrains  obs.Counter
	refusedLinks   obs.Counter
	refusedServing obs.Counter
	refusedTokens  obs.Counter
	refusedCalls   obs.Counter
	requests       obs.Histogram
	applying       obs.Histogram
	leads          obs.Gauge
	terms          obs.Counter
}

// applyBuckets are bounds in seconds: a router takes milliseconds, a full table some seconds.
var applyBuckets = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}

// newMetrics makes the daemon's metrics in a registry, nil: its own.
func newMetrics(m *obs.Metrics) metrics {
	if m == nil {
		m = obs.NewMetrics("controld")
	}
	return metrics{
		registry:       m,
		events:         m.Counter("events_total", "Events by kind.", "kind"),
		orders:         m.Counter("router_orders_total", "Rules sent to routers, in messages."),
		dropped:        m.Counter("streams_dropped_total", "Streams ended because the peer did not read."),
		snapshots:      m.Counter("router_snapshots_total", "Full sets of rules sent to routers."),
		storeErrors:    m.Counter("store_failures_total", "Times that saving began to fail."),
		refusedEvents:  m.Counter("host_events_refused_total", "Events of hosts that were too many, too long or of kinds that are not theirs."),
		refusedDrains:  m.Counter("drains_refused_total", "Drains of a service's last instance that were asked for without force."),
		refusedLinks:   m.Counter("link_reports_refused_total", "Reports of routers of which some links were too many, too long or to themselves."),
		refusedTokens:  m.Counter("tokens_refused_total", "Tokens that were forged, expired, used already or for another."),
		refusedCalls:   m.Counter("calls_refused_total", "Calls without a credential of the network, and of members who may not make them.", "why"),
		refusedServing: m.Counter("registrations_refused_total", "Registrations of hosts that may not serve, by what speaks against it.", "why"),
		requests:       m.Histogram("requests_seconds", "Calls of the API, streams left out, by method and outcome.", nil, "method", "code"),
		applying:       m.Histogram("rules_apply_seconds", "From sending rules to a router until it says that they are in its data path.", applyBuckets),
		leads:          m.Gauge("leads", "1 where this controller leads the network, 0 where it stands by."),
		terms:          m.Counter("terms_total", "Times that this controller began to lead."),
	}
}

// timed is the interceptor that observes calls. Streams last as long as their daemons.
func (m *metrics) timed() connect.Interceptor {
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			began := time.Now()
			answer, err := next(ctx, req)
			code := "ok"
			if err != nil {
				code = connect.CodeOf(err).String()
			}
			m.requests.Observe(time.Since(began).Seconds(), path.Base(req.Spec().Procedure), code)
			return answer, err
		}
	})
}
