package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// An agent that loses another one, machine and all, has others of that one's site go on with the sessions between the two
// (docs/protocol.md §9.4).

const (
	// silentFor is how long the machine of another agent says nothing, beside two round trips, until others are asked. A path
	// that loses a burst is silent for one timeout of the kernel's, 200 ms and a round trip. Who asks in vain costs each end
	// host a segment five times a second, and the sessions nothing.
	silentFor = 400 * time.Millisecond
	listens   = 50 * time.Millisecond // how often it is looked
)

// A Turned session is one that another agent was asked to go on with.
type Turned struct {
	Client, Server string
	To             string // the agent that was asked
	Err            error  // why it does not; nil: it does
}

// about reports whether a connection is the lane's, or that of another slot of its entry: agents that share an entry by slots
// stand for each other. Where switches rewrite, nobody does: they send what an end host says to one agent's port.
func (l *Lane) about(client, server netip.AddrPort) bool {
	if l.Rewrite {
		return false
	}
	all := *l
	all.Slot, all.Bits = 0, 0
	return all.Takes(client, server)
}

// side are the lane's agents beside its clients, or beside its servers.
func (l *Lane) side(near bool) []string {
	if near {
		return l.Near
	}
	return l.Far
}

// spares are the agents that could go on with a connection beside one of its ends, but for the one that is lost, in order.
func (a *Agent) spares(m frame.Open, near bool, lost string) (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lanes {
		if l.about(m.Client, m.Server) {
			names = append(names, l.side(near)...)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == lost || name == a.Name })
}

// mayTakeOver says why this agent does not go on with a connection for another one, 0 if it does: there is a lane, but for its
// slot, that has the other one at its other end, and this one where the end host is.
func (a *Agent) mayTakeOver(from string, m frame.Takeover) frame.Refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	why := frame.NotMyLane
	for _, l := range a.lanes {
		if l.about(m.Open.Client, m.Server) && slices.Contains(l.side(m.Client), a.Name) && slices.Contains(l.side(!m.Client), from) {
			why = 0
		}
	}
	if why == 0 && a.draining {
		why = frame.Draining
	}
	return why
}

// restore goes on with a connection that another agent asks for.
func (p *peer) restore(ctx context.Context, m frame.Takeover) (trunk.Attached, uint64, error) {
	if why := p.a.mayTakeOver(p.name, m); why != 0 {
		return trunk.Attached{}, 0, &trunk.Refused{Reason: why}
	}
	c, wants, err := p.a.Ends.TakeOver(ctx, m)
	return trunk.Attached{Conn: c, Host: m.Host, Own: m.Own}, wants, err
}

// watch looks whether the other agent's machine is silent, until the peer ends.
func (p *peer) watch() {
	tick := time.NewTicker(listens)
	defer tick.Stop()
	for p.next(tick) {
		if p.silent() {
			p.silence(tick)
		}
	}
}

// next waits until it is time to look; false: the peer has ended.
func (p *peer) next(tick *time.Ticker) bool {
	select {
	case <-p.ctx.Done():
		return false
	case <-tick.C:
		return true
	}
}

func (p *peer) silent() bool {
	return p.trunk.Sessions() > 0 && p.trunk.Silent(time.Now(), silentFor)
}

// silence has other agents go on with the sessions of one that is silent. Who was asked is asked no more once it is heard again.
func (p *peer) silence(tick *time.Ticker) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	tried := map[*trunk.Session]map[string]bool{} // which agents were asked for a session
	for p.silent() {
		p.askAll(ctx, tried)
		if !p.next(tick) {
			return
		}
	}
}

// askAll has the next agent asked for each session that nobody is being asked for.
func (p *peer) askAll(ctx context.Context, tried map[*trunk.Session]map[string]bool) {
	for _, s := range p.trunk.Movable() {
		if tried[s] == nil {
			tried[s] = map[string]bool{}
		}
		if to := p.spare(s, tried[s]); to != nil {
			tried[s][to.name] = true
			to.asked.Add(1)
			p.all.Go(func() {
				defer to.asked.Add(-1)
				p.turn(ctx, s, to)
			})
		}
	}
}

// spare is the next agent that could go on with a session; nil: there is none, or each is asked for many already.
func (p *peer) spare(s *trunk.Session, tried map[string]bool) *peer {
	names := p.a.spares(s.Ends(), !s.IsNear(), p.name)
	p.a.mu.Lock()
	var all []*peer
	for _, name := range names {
		if o := p.a.peers[name]; o != nil && !tried[name] {
			all = append(all, o)
		}
	}
	p.a.mu.Unlock()
	for _, o := range all {
		if o.asked.Load() < trunk.AsksAtOnce && o.trunk.TakesOver() {
			return o
		}
	}
	return nil
}

// turn asks an agent to go on with a session. Where that says that nobody can both ends are reset, this one's by us.
func (p *peer) turn(ctx context.Context, s *trunk.Session, to *peer) {
	late, cancel := context.WithTimeout(ctx, p.a.Patience)
	defer cancel()
	err := to.trunk.TakeOver(late, s)
	if err != nil && ctx.Err() != nil { // nobody is lost
		return
	}
	var refused *trunk.Refused
	if errors.As(err, &refused) && refused.Reason == frame.CannotGoOn {
		s.Lose()
	}
	m := s.Ends()
	p.a.Report(Event{Agent: p.name, Turned: &Turned{Client: m.Client.String(), Server: m.Server.String(), To: to.name, Err: err}})
}
