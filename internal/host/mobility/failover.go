package mobility

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A failover takes clients' flows to other instances, and makes connections of those that come from others.
type failover struct {
	*flows
	questions *questions

	nudging []session.Key
	scouted map[sid.ServiceID]bool // services whose flows look for another instance
}

func (s *failover) renew() { s.scouted = map[sid.ServiceID]bool{} }

// A resume is a client's flow that looks for another instance.
type resume struct {
	transport wire.Transport
	window    uint16 // that the client's socket has told
	asking    bool   // no instance has taken it yet
	early     bool   // read right after the edge had blocked it
}

type resumes map[session.Key]*resume

// fewBlocked is how many connections are read at once, in the loop; of more, the kernel's whole table tells.
const fewBlocked = 64

// block reads the connections that the edge has just blocked. True: some are read, and the engine has something to say.
// Of more than a few the kernel's table is read milliseconds later. A few are read at once, and then a segment may be
// between the edge and the socket, on another processor: see reread.
func (s *failover) block(keys []session.Key) (again bool) {
	for _, k := range keys {
		t := s.held[k].tuple
		if len(keys) <= fewBlocked {
			if c, sure := s.kernel.Look(t); sure {
				s.resume(k, c)
				if r := s.resumes[k]; r != nil {
					r.early = true
				}
				again = true
				continue
			}
		}
		s.kernel.Read(t, func(c *kick.Socket) { s.resume(k, c) })
	}
	return again
}

// resume looks for another instance for a blocked flow, if its connection can be carried on.
func (s *failover) resume(k session.Key, c *kick.Socket) {
	now := time.Now()
	if c == nil {
		s.engine.Abandon(now, k, wire.NoSocket)
		return
	}
	t, err := c.Transport()
	if err != nil {
		s.tell(now, k, "failover", err.Error())
		s.engine.Abandon(now, k, wire.Unreachable)
		return
	}
	s.resumes[k] = &resume{transport: t, window: c.Window(), asking: true}
	s.engine.Continue(now, k, t)
	if v, ok := s.engine.View(k); ok {
		s.scout(v.Service)
	}
}

// adoptedTuple is the flow of a client that goes on at this host, as its new socket will see it.
func adoptedTuple(space sid.Space, c session.Change) host.Tuple {
	return host.Tuple{
		Local:  netip.AddrPortFrom(space.ServiceAddr(c.Service), c.Transport.ServerPort),
		Remote: netip.AddrPortFrom(c.Key.Stable, c.Transport.ClientPort),
		Proto:  c.Proto,
	}
}
