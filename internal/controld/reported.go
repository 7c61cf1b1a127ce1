package controld

import (
	"slices"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// How many events a host may have in the history at once, and how many more each second; and how much one
// may say.
const (
	eventBurst    = 50
	eventsASecond = 10
	maxAttrs      = 16
)

// reportedEvents are what hosts tell: of their flows, and of gateways that run on them.
var reportedEvents = []string{"flow.", "gateway."}

// A meter lets somebody tell so much and no more.
type meter struct {
	tokens  float64
	filled  time.Time
	skipped uint64
}

func (m *meter) take(now time.Time, burst, aSecond float64) bool {
	m.tokens = min(burst, m.tokens+now.Sub(m.filled).Seconds()*aSecond)
	m.filled = now
	if m.tokens < 1 {
		m.skipped++
		return false
	}
	m.tokens--
	return true
}

// reported takes what a host tells into the history.
func (n *network) reported(h *host, e *apiv1.Event) {
	known := slices.ContainsFunc(reportedEvents, func(p string) bool { return strings.HasPrefix(e.GetKind(), p) })
	if !known || printable(e.Kind) != e.Kind || len(e.Kind) > maxText || len(e.Attrs) > maxAttrs {
		n.metrics.refusedEvents.Inc()
		return
	}
	if !h.meter.take(time.Now(), eventBurst, eventsASecond) {
		n.metrics.refusedEvents.Inc()
		return
	}
	attrs := []string{"host", h.Name}
	for k, v := range e.Attrs {
		if len(k) <= maxText && k != "host" {
			attrs = append(attrs, k, printable(shortened(v)))
		}
	}
	if h.meter.skipped > 0 {
		attrs = append(attrs, "not_told", uitoa(h.meter.skipped))
		h.meter.skipped = 0
	}
	n.event(e.Kind, n.subject(h, e), because(h.Name, e.Text), attrs...)
}

// subject is the service that the event is of, if there is one of that name, or else the host.
func (n *network) subject(h *host, e *apiv1.Event) string {
	if r, err := n.names.Named(e.Subject); err == nil {
		return r.Name
	}
	return h.Name
}
