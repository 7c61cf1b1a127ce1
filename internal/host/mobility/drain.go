package mobility

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Order does what the controller says of the flows of a service that this host serves: with "wait" they end
// in peace, and the load report shows how many are left.
func (s *Sessions) Order(o *apiv1.DrainOrder) {
	id := sid.ServiceID{SS: o.Ss, Suffix: sid.Suffix(o.Suffix)}
	s.noticeDrain(id, o.Mode)
	if o.Mode == "shed" {
		n := s.Shed(wire.Draining, func(f host.Flow) bool { return f.Service == id })
		s.log.Info("shed the flows of a service", "service", s.serving.Name(id), "flows", n)
	}
}

// Shed gives up flows that this host serves; their clients go elsewhere, by the service's policy.
func (s *flows) Shed(why wire.Reason, want func(host.Flow) bool) int {
	if s.engine == nil {
		return 0
	}
	keys := s.enterAll(func(f host.Flow) bool { return f.Role == host.Server && want(f) })
	live := keys[:0]
	for _, k := range keys {
		if _, ok := s.engine.View(k); ok {
			live = append(live, k)
		}
	}
	s.fail(time.Now(), why, live)
	return len(live)
}

// Bar ends the flows of those who may not connect any more: they do not fail over.
func (s *Sessions) Bar(id sid.ServiceID, barred func(sid.Locator) bool) {
	n := s.Shed(wire.Forbidden, func(f host.Flow) bool {
		peer := f.WirePeer.Addr()
		return f.Service == id && peer.Is6() && barred(sid.LocatorOf(peer))
	})
	if n > 0 {
		s.log.Info("ended the flows of clients that may not connect any more", "service", s.serving.Name(id), "flows", n)
	}
}

// Serves counts the flows that this host serves of a service.
func (s *Sessions) Serves(want func(sid.ServiceID) bool) (n int) {
	if s.engine == nil {
		return 0
	}
	s.edge.Walk(func(f host.Flow) bool { //nolint:errcheck // what cannot be read is not counted
		if f.Role == host.Server && f.State != host.Closing && want(f.Service) && !s.isQuiet(f.Tuple) {
			n++
		}
		return true
	})
	return n
}

// isQuiet reports whether the flow is only waiting to be forgotten.
func (s *flows) isQuiet(t host.Tuple) bool {
	_, ok := s.quiet[t]
	return ok && !s.alive(t)
}
