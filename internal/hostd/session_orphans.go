package hostd

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// orphaned gives up the datagram flows of an instance whose last socket, the one of the cookie, was closed: no
// FIN tells their clients that nobody listens. Flows with connected sockets of their own go on.
func (s *sessions) orphaned(t sid.Triple, cookie uint64) {
	if s.engine == nil {
		return
	}
	own, err := s.d.connected(t.Port, cookie)
	if err != nil {
		s.d.log.Warn("cannot tell which datagram flows have lost their socket", "triple", t, "error", err)
		return
	}
	s.d.serving.flush() // nothing new comes here any more when the first client turns away
	n := s.shed(wire.ProcessDied, func(f host.Flow) bool {
		return f.Service == t.Service && f.Proto == sid.UDP && f.Local.Port() == t.Port && !own[f.Peer]
	})
	if n > 0 {
		s.d.log.Info("datagram flows have lost their socket", "service", s.d.serving.name(t.Service), "port", t.Port, "flows", n)
	}
}

// connected lists the peers of the datagram sockets of this host and its guests at a port; without that of the cookie, which may
// still be there.
func (d *daemon) connected(port uint16, cookie uint64) (map[netip.AddrPort]bool, error) {
	peers := map[netip.AddrPort]bool{}
	err := d.eachSocket(sid.UDP, sockets.StateAny, port, func(s sockets.DiagSocket) {
		if s.Cookie != cookie {
			peers[s.Peer] = true
		}
	})
	return peers, err
}
