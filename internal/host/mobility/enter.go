package mobility

import (
	"errors"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// endedFor is how long a flow that both ends have closed still moves: its last segments may be lost.
const endedFor = 10 * time.Second

// enter gives the engine a flow of the edge, once.
func (s *flows) enter(f host.Flow) (session.Key, bool) {
	s.dropReplaced(f)
	if k, ok := s.byTuple[f.Tuple]; ok {
		if v, there := s.engine.View(k); there {
			if v.State == session.Connecting && f.State == host.BoundFlow {
				s.established(time.Now(), f) // nobody told: events are lost where the daemon does not read
				k = s.byTuple[f.Tuple]
			}
			return k, true
		}
	}
	if !f.Stable.IsValid() || f.Locator == 0 {
		s.counters["nameless"]++ // it began while no uplink had a locator
		return session.Key{}, false
	}
	if f.Role == host.Client && f.State == host.Connecting {
		f.Stable = f.Locator.Addr(uint64(f.ID)) // no attempt was answered yet: what the flow was called before it was unbound is over
	}
	k := session.Key{Stable: f.Stable, Role: RoleOf(f)}
	x := session.Flow{Key: k, Proto: f.Proto, Service: f.Service, Local: session.Addr{Locator: f.Locator, Socket: f.ID}}
	if peer := session.AddrOf(f.WirePeer.Addr()); f.State != host.Connecting && peer.Socket.Valid() {
		x.Peer = peer
	}
	x.Continue = s.mayContinue(k, f.Proto, f.Service) && f.State != host.Closing
	if err := s.engine.Add(x); err != nil && !errors.Is(err, session.ErrKnown) {
		s.log.Debug("flow", "stable", f.Stable, "error", err)
		return k, false
	}
	s.holdFlow(k, f)
	s.history.Begin(k, f)
	return k, true
}

// dropReplaced gives up the engine's flow of the same tuple where the edge has another one now.
func (s *flows) dropReplaced(f host.Flow) {
	if k, ok := s.byTuple[f.Tuple]; ok && s.replaced(k, f) {
		s.counters["replaced"]++
		s.engine.Close(time.Now(), k)
	}
}

// replaced reports whether the edge's flow is another one than the engine's.
func (s *flows) replaced(k session.Key, f host.Flow) bool { return s.held[k].replacedBy(f) }

func (h held) replacedBy(f host.Flow) bool { return h.birth != 0 && h.birth != f.Birth }

// RoleOf is the engine's word for the role of a flow of the edge.
func RoleOf(f host.Flow) session.Role {
	if f.Role == host.Server {
		return session.Server
	}
	return session.Client
}

// holdFlow notes which flow of the edge a flow of the engine is.
func (s *flows) holdFlow(k session.Key, f host.Flow) {
	h := held{tuple: f.Tuple}
	if f.Role == host.Client {
		h.birth = f.Birth
	}
	s.hold(k, h)
}

func (s *flows) hold(k session.Key, h held) {
	if before, ok := s.byTuple[h.tuple]; ok {
		s.history.Rename(before, k)
	}
	s.held[k], s.byTuple[h.tuple] = h, k
	s.history.Again(k)
}

// release forgets it.
func (s *flows) release(k session.Key) {
	h, ok := s.held[k]
	if !ok {
		return
	}
	delete(s.held, k)
	if s.byTuple[h.tuple] == k {
		delete(s.byTuple, h.tuple)
	}
	delete(s.resumes, k)
	s.history.End(k, time.Now())
}

// enterAll enters the flows that want asks for, in one walk.
func (s *flows) enterAll(want func(host.Flow) bool) (keys []session.Key) {
	var found []host.Flow
	err := s.edge.Walk(func(f host.Flow) bool {
		s.dropReplaced(f)
		if want(f) && !stale(f) {
			found = append(found, f)
		}
		return true
	})
	if err != nil {
		s.log.Error("cannot list the flows", "error", err)
	}
	for _, f := range found {
		if k, ok := s.enter(f); ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// stale reports whether a flow has ended long enough ago.
func stale(f host.Flow) bool {
	return f.State == host.Closing && host.IdleMS(f.LastSeen) > endedFor.Milliseconds()
}

// known finds the flow under one of our socketIDs, in the engine or at the edge.
func (s *flows) known(id sid.SocketID) (session.Key, bool) {
	if k, ok := s.owner(id); ok || id == 0 {
		return k, ok
	}
	f, ok, err := s.edge.Flow(id)
	if err != nil || !ok {
		return session.Key{}, false
	}
	return s.enter(f)
}

// owner is the engine's flow under one of our socketIDs, unless it is connecting: the edge may have bound it.
func (s *flows) owner(id sid.SocketID) (session.Key, bool) {
	k, ok := s.engine.Owner(id)
	v, _ := s.engine.View(k)
	return k, ok && v.State != session.Connecting
}

// find finds the flow of a tuple.
func (s *flows) find(t host.Tuple) (session.Key, bool) {
	f, ok, err := s.edge.Lookup(t)
	if err != nil || !ok {
		return session.Key{}, false
	}
	return s.enter(f)
}
