package hostd

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// order does what the controller says of the flows of a service that this host serves: with "wait" they end
// in peace, and the load report shows how many are left.
func (s *sessions) order(o *apiv1.DrainOrder) {
	id := sid.ServiceID{SS: o.Ss, Suffix: sid.Suffix(o.Suffix)}
	s.noticeDrain(id, o.Mode)
	if o.Mode == "shed" {
		n := s.shed(wire.Draining, func(f host.Flow) bool { return f.Service == id })
		s.d.log.Info("shed the flows of a service", "service", s.d.serving.name(id), "flows", n)
	}
}

// shed gives up flows that this host serves; their clients go elsewhere, by the service's policy.
func (s *sessions) shed(why wire.Reason, want func(host.Flow) bool) int {
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

// bar ends the flows of those who may not connect any more: they do not fail over.
func (s *sessions) bar(id sid.ServiceID, barred func(sid.Locator) bool) {
	n := s.shed(wire.Forbidden, func(f host.Flow) bool {
		peer := f.WirePeer.Addr()
		return f.Service == id && peer.Is6() && barred(sid.LocatorOf(peer))
	})
	if n > 0 {
		s.d.log.Info("ended the flows of clients that may not connect any more", "service", s.d.serving.name(id), "flows", n)
	}
}

// serving counts the flows that this host serves of a service.
func (s *sessions) serving(want func(sid.ServiceID) bool) (n int) {
	if s.engine == nil {
		return 0
	}
	s.edge.Walk(func(f host.Flow) bool { //nolint:errcheck // what cannot be read is not counted
		if f.Role == host.Server && f.State != host.Closing && want(f.Service) && !s.buried(f.Tuple) {
			n++
		}
		return true
	})
	return n
}

// buried reports whether the flow is only waiting to be forgotten.
func (s *sessions) buried(t host.Tuple) bool {
	_, ok := s.quiet[t]
	return ok && !s.alive(t)
}
