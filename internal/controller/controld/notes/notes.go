// Package notes takes into the history what others tell: hosts of their flows and gateways, and who drives the switches of
// these and of modules. It bounds how much, how long and of which kinds, for whoever tells may lie, or flood.
package notes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/core/names"
)

// How many events a host may have in the history at once, and how many more each second; and how many may be told of
// switches and modules: a network of switches may come all at once.
const (
	HostBurst     = 50
	hostsASecond  = 10
	switchBurst   = 1000
	switchASecond = 100
)

// How much one may say.
const (
	maxText   = 256 // of a kind, a subject or an attribute's name, in bytes
	maxAttrs  = 16
	maxSuffix = 32 // of the kind of what a switch or module did
)

// hostKinds are what hosts tell: of their flows, and of gateways that run on them.
var (
	hostKinds   = []string{"flow.", "gateway."}
	switchKinds = []string{"switch.", "module."}
)

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// Services are those that there are.
type Services interface {
	Named(name string) (names.Record, error)
}

// A Counter counts.
type Counter interface {
	Inc(values ...string)
}

// Notes are what is told in one term. The loop owns them.
type Notes struct {
	events   Events
	services Services
	refused  Counter
	switches events.Meter
}

// New has taken nothing yet.
func New(e Events, s Services, refused Counter) *Notes {
	return &Notes{events: e, services: s, refused: refused}
}

// MayTell reports whether there is room for another event about a host, by its meter.
func MayTell(host *events.Meter) bool { return host.Take(time.Now(), HostBurst, hostsASecond) }

func ofKind(e *apiv1.Event, kinds []string) bool {
	return slices.ContainsFunc(kinds, func(p string) bool { return strings.HasPrefix(e.GetKind(), p) }) && events.Printable(e.Kind) == e.Kind
}

// FromHost takes what a host tells, by its meter. Its subject is the service of that name, where there is one, or the host.
func (x *Notes) FromHost(host string, meter *events.Meter, e *apiv1.Event) {
	if !ofKind(e, hostKinds) || len(e.Kind) > maxText || len(e.Attrs) > maxAttrs || !MayTell(meter) {
		x.refused.Inc()
		return
	}
	attrs := []string{"host", host}
	for k, v := range e.Attrs {
		if len(k) <= maxText && k != "host" {
			attrs = append(attrs, k, events.Printable(events.Shortened(v)))
		}
	}
	subject := host
	if r, err := x.services.Named(e.Subject); err == nil {
		subject = r.Name
	}
	x.events.Tell(e.Kind, subject, events.Because(host, e.Text), skipped(meter, attrs)...)
}

// skipped adds how many were not told before.
func skipped(m *events.Meter, attrs []string) []string {
	if m.Skipped > 0 {
		attrs = append(attrs, "not_told", events.Number(m.Skipped))
		m.Skipped = 0
	}
	return attrs
}

// ErrTooMany says that more is told of switches than the history takes.
var ErrTooMany = errors.New("too many notes")

// Check says what of an event of switches or modules is not to be taken.
func Check(e *apiv1.Event) error {
	if _, what, _ := strings.Cut(e.Kind, "."); !ofKind(e, switchKinds) || len(what) > maxSuffix {
		return fmt.Errorf("event of kind %.80q: want one of switches or modules", e.Kind)
	}
	if len(e.Subject) > maxText || len(e.Attrs) > maxAttrs {
		return fmt.Errorf("event %s with %d attributes and a subject of %d bytes: at most %d and %d", e.Kind, len(e.Attrs), len(e.Subject), maxAttrs, maxText)
	}
	return nil
}

// FromSwitches takes what was checked.
func (x *Notes) FromSwitches(e *apiv1.Event) error {
	if !x.switches.Take(time.Now(), switchBurst, switchASecond) {
		x.refused.Inc()
		return fmt.Errorf("%w: more than %d a second", ErrTooMany, switchASecond)
	}
	var attrs []string
	for _, k := range slices.Sorted(maps.Keys(e.Attrs)) {
		if len(k) <= maxText {
			attrs = append(attrs, events.Printable(k), events.Printable(events.Shortened(e.Attrs[k])))
		}
	}
	x.events.Tell(e.Kind, events.Printable(e.Subject), events.Printable(events.Shortened(e.Text)), skipped(&x.switches, attrs)...)
	return nil
}
