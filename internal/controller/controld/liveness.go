package controld

import (
	"errors"
	"time"

	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/core/plan"
)

// lease decides about the host in a while, unless something happens meanwhile.
func (n *network) lease(h *host) { n.leaseFor(h, n.cfg.Lease) }

func (n *network) leaseFor(h *host, d time.Duration) {
	h.absences++
	absence := h.absences
	n.loop.After(d, func() {
		if h.absences == absence {
			n.leaseOver(h)
		}
	})
}

// lostHost is told that a host's stream ended. Nothing is withdrawn by that alone.
func (n *network) lostHost(name string, s *hostSession, err error) {
	h, ok := n.hosts[name]
	if !ok || h.session != s {
		return
	}
	h.session, h.reported, h.away = nil, false, time.Now()
	if errors.Is(err, session.ErrSlow) {
		n.metrics.dropped.Inc()
	}
	if h.Here {
		n.lease(h)
	}
}

// leaseOver decides about a host that is gone, or whose daemon stayed away: the routers' word counts, and
// where no router can say anything its instances stay, for then it is us who see nothing.
func (n *network) leaseOver(h *host) {
	if h.session != nil || !h.Here {
		return // one that is gone and has a stream may lie unplugged: its flows wait for it
	}
	gone := n.places.State(&h.Host) == plan.HostGone
	probed, away := n.places.Witnesses(&h.Host)
	switch {
	case gone && (probed || away == ""):
		n.leave(h, "neither its edge nor its daemon answers", true)
	case probed:
		n.events.Tell("host.silent", h.Name, "host's daemon is away; its edge answers probes, so its instances stay")
	case away != "":
		n.events.Tell("host.silent", h.Name, "host's daemon and its router "+away+" are away; its instances stay")
		n.routers.Distrust(away)
	case n.places.Early(&h.Host, n.cfg.Lease):
		n.lease(h)
	default:
		n.leave(h, "its daemon is away and its router does not know it", true)
	}
}
