package mobility

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/history"
	"scaffold.dev/scaffold/sid"
)

// Ready reports whether there is an edge, and with it flows.
func (s *flows) Ready() bool { return s.engine != nil }

// View is how far the engine has come with a flow.
func (s *flows) View(k session.Key) (session.View, bool) { return s.engine.View(k) }

// Each tells of all flows of the engine.
func (s *flows) Each(f func(t host.Tuple, v session.View)) {
	s.engine.Each(func(v session.View) bool {
		f(s.held[v.Key].tuple, v)
		return true
	})
}

// Seek finds a flow by what a program sees; of a datagram socket that may take a look at all.
func (s *flows) Seek(p sid.Proto, local, peer netip.AddrPort) (found host.Flow, ok bool) {
	if f, ok, err := s.edge.Lookup(host.Tuple{Local: local, Remote: peer, Proto: p}); err == nil && ok {
		return f, true
	}
	s.edge.Walk(func(f host.Flow) bool { //nolint:errcheck // not found, then
		if f.Proto == p && SameEnds(f, local, peer) {
			found, ok = f, true
		}
		return !ok
	})
	if ok || p != sid.UDP {
		return found, ok
	}
	s.edge.Walk(func(f host.Flow) bool { //nolint:errcheck // as above
		if f.Role == host.Client && f.Proto == p && SameEnds(f, local, netip.AddrPortFrom(peer.Addr(), f.Peer.Port())) {
			t := f.Tuple
			t.Remote = peer
			found, ok, _ = s.edge.Answered(t)
		}
		return !ok
	})
	return found, ok
}

// SameEnds reports whether a flow is the one that a program sees between the two addresses. A datagram
// socket may be bound to no address, and answer from another port; a flow of the edge before has all ports.
func SameEnds(f host.Flow, local, peer netip.AddrPort) bool {
	if f.Proto != sid.TCP {
		remote := f.Peer == peer || f.Peer.Port() == 0 && f.Peer.Addr() == peer.Addr()
		return remote && (local.Addr().IsUnspecified() || f.Local.Addr() == local.Addr()) &&
			(f.Role == host.Server || f.Local.Port() == local.Port())
	}
	return f.Local == local && f.Peer == peer
}

// History finds what happened to a flow by what people call it, and the flow itself where it lives; t is nil where nothing
// has happened to it.
func (s *flows) History(want string) (t *history.Flow, f host.Flow, live bool) {
	t = s.history.Find(want)
	if t != nil {
		f, live, _ = s.edge.Lookup(t.Tuple)
		return t, f, live && f.Stable == t.Key.Stable
	}
	id, ip, at := history.ParseName(want)
	s.edge.Walk(func(x host.Flow) bool { //nolint:errcheck // not found, then
		if id != 0 && x.ID == id || ip.IsValid() && x.Stable == ip || at.IsValid() && (x.Local == at || x.Peer == at) {
			f, live = x, true
		}
		return !live
	})
	return nil, f, live
}
