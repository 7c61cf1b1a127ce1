package hostd

import (
	"log/slog"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// refusals are what becomes of packets that the network refuses: another host is asked, or the socket is told.
type refusals struct {
	*host.Refusals
	log       *slog.Logger
	edge      func() *host.Edge
	connected func() bool // there is a controller to tell the routers who serves
}

func newRefusals(d *daemon) *refusals {
	r := &refusals{log: d.log, edge: func() *host.Edge { return d.edge }, connected: func() bool { return d.control.Connected() }}
	r.Refusals = host.NewRefusals(r.whoElse)
	return r
}

// event feeds the policy of refusals, which asks again or tells the socket.
func (r *refusals) event(e host.Event) {
	r.Handle(time.Now(), e)
	r.expire()
}

// expire does what is due.
func (r *refusals) expire() {
	r.Expire(time.Now())
	r.answer()
}

// whoElse are the hosts to ask where the network refuses, docs/protocol.md §3.5. That nobody serves a service at all is
// believed while there is a controller to tell the routers.
func (r *refusals) whoElse(e host.Event) []sid.Locator {
	if !e.NoSuchPort() && r.connected() {
		return nil
	}
	return r.edge().RecentPeers(e)
}

func (r *refusals) answer() {
	for _, a := range r.Drain() {
		var err error
		if a.Retry {
			err = r.edge().Retry(a.Event, a.Label, a.To)
		} else {
			err = r.edge().InjectRefusal(a.Event)
		}
		if err != nil {
			r.log.Debug("refusal", "flow", a.Event.ID, "error", err)
		}
	}
}
