package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// Names are how an agent serves a service for those who do, and asks for it: as any program of its host. The network leads clients
// to it, and what it asks for to who serves.
type Names interface {
	// Listen serves a service at one of its ports.
	Listen(at netip.AddrPort) (net.Listener, error)
	// Dial connects to one. A *trunk.Refused says that the service refused.
	Dial(ctx context.Context, at netip.AddrPort) (*net.TCPConn, error)
}

const (
	// namesEvery is how often it is looked whether a far agent carries names, for what no event tells: one that refuses.
	namesEvery = 100 * time.Millisecond
	// refusedFor is how long a name is not served that all far agents have refused to carry.
	refusedFor = 5 * time.Second
)

// isNamed reports whether a lane is that of a name, which this agent can serve or ask for.
func (a *Agent) isNamed(lane uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lanes[lane]
	return l != nil && l.Named && a.Names != nil
}

// serves reports whether this agent is near in a lane of the same name. It is called with the lock held.
func (a *Agent) serves(l *Lane) bool {
	for _, o := range a.lanes {
		if o.Named && o.Server == l.Server && o.Port == l.Port && o.isNear(a.Name) {
			return true
		}
	}
	return false
}

// A served name has a listener while connections to it can be carried. Nobody else learns of that by the agent: its host withdraws
// what has no listener, and the network leads clients to those who serve.
type served struct {
	lane     uint64
	at       netip.AddrPort
	listener net.Listener // nil: it is not served now
	trouble  string       // why it could not be
	refused  time.Time    // when all far agents had refused it; zero: they have not
}

// serveNames serves what the lanes say until the agent ends.
func (a *Agent) serveNames() {
	all := map[uint64]*served{}
	for {
		a.follow(all)
		var again <-chan time.Time
		if len(all) > 0 { // who carries no names is not woken
			again = time.After(namesEvery)
		}
		select {
		case <-a.ctx.Done():
			for _, s := range all {
				s.close()
			}
			return
		case <-a.names:
		case <-again:
		}
	}
}

// lookAtNames has serveNames look at once: who is accepted when no far agent is there any more is reset.
func (a *Agent) lookAtNames() {
	select {
	case a.names <- struct{}{}:
	default: // it is about to
	}
}

// follow brings what is served up to the lanes, and to which far agents are there.
func (a *Agent) follow(all map[uint64]*served) {
	want := a.namesNear()
	for lane, s := range all {
		if at, still := want[lane]; !still || at != s.at {
			s.close()
			delete(all, lane)
		}
	}
	for lane, at := range want {
		s := all[lane]
		if s == nil {
			s = &served{lane: lane, at: at}
			all[lane] = s
		}
		if !a.carries(s) {
			s.close()
		} else if s.listener == nil {
			a.listen(s)
		}
	}
}

func (s *served) close() {
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
}

// namesNear are the services that this agent is to serve, by lane.
func (a *Agent) namesNear() map[uint64]netip.AddrPort {
	a.mu.Lock()
	defer a.mu.Unlock()
	want := map[uint64]netip.AddrPort{}
	for number, l := range a.lanes {
		if l.Named && l.isNear(a.Name) {
			want[number] = netip.AddrPortFrom(l.Server.Addr(), l.Port)
		}
	}
	return want
}

// carries reports whether a far agent is there for a name that has not refused it lately.
func (a *Agent) carries(s *served) bool {
	far := slices.DeleteFunc(a.candidates(s.lane), func(p *peer) bool { return !p.trunk.Ready() })
	if len(far) == 0 {
		return false
	}
	switch takes := slices.ContainsFunc(far, func(p *peer) bool { return a.takes(s.lane, p.name) }); {
	case takes:
		s.refused = time.Time{}
		return true
	case s.refused.IsZero():
		s.refused = time.Now()
		return false
	case time.Since(s.refused) < refusedFor:
		return false
	}
	s.refused = time.Time{}
	for _, p := range far { // the next client finds out
		a.heard(s.lane, p.name, nil)
	}
	return true
}

func (a *Agent) listen(s *served) {
	l, err := a.Names.Listen(s.at)
	if err != nil {
		if text := err.Error(); text != s.trouble {
			s.trouble = text
			a.Report(Event{Err: fmt.Errorf("the service at %v is not served here: %w", s.at, err)})
		}
		return
	}
	s.listener, s.trouble = l, ""
	a.all.Go(func() { a.acceptAt(s.lane, s.at, l) })
}

// acceptAt takes clients of a name until its listener ends.
func (a *Agent) acceptAt(lane uint64, at netip.AddrPort, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			if a.ctx.Err() != nil || !isTemporary(err) {
				return
			}
			select { // no descriptor is left, for instance: the client waits in the kernel's queue
			case <-time.After(20 * time.Millisecond):
				continue
			case <-a.ctx.Done():
				return
			}
		}
		a.all.Go(func() { a.bring(lane, at, c) })
	}
}

// isTemporary reports whether a listener is there still.
func isTemporary(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Temporary()
}

// bring finds a far agent for a client, whom the kernel has accepted: the client is reset where nobody can help.
func (a *Agent) bring(lane uint64, at netip.AddrPort, c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	from, is := c.RemoteAddr().(*net.TCPAddr)
	if !ok || !is {
		c.Close()
		return
	}
	ctx, cancel := context.WithTimeout(a.ctx, a.Patience)
	defer cancel()
	m := frame.Open{Lane: lane, Client: from.AddrPort(), Server: at}
	if a.openWith(ctx, m, a.candidates(lane), trunk.Attached{Conn: tcp}) != nil {
		tcp.SetLinger(0)
		tcp.Close()
	}
}
