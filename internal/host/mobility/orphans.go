package mobility

import (
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Orphaned gives up the datagram flows of an instance whose last socket, the one of the cookie, was closed: no
// FIN tells their clients that nobody listens. Flows with connected sockets of their own go on.
func (s *Sessions) Orphaned(t sid.Triple, cookie uint64) {
	if s.engine == nil {
		return
	}
	own, err := s.serving.Connected(t.Port, cookie)
	if err != nil {
		s.log.Warn("cannot tell which datagram flows have lost their socket", "triple", t, "error", err)
		return
	}
	s.serving.Flush() // nothing new comes here any more when the first client turns away
	n := s.Shed(wire.ProcessDied, func(f host.Flow) bool {
		return f.Service == t.Service && f.Proto == sid.UDP && f.Local.Port() == t.Port && !own[f.Peer]
	})
	if n > 0 {
		s.log.Info("datagram flows have lost their socket", "service", s.serving.Name(t.Service), "port", t.Port, "flows", n)
	}
}
