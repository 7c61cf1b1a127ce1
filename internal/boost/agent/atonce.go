package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// refusing is a far agent that could take no connection of a lane when it was asked last.
type refusing struct {
	lane uint64
	far  string
}

// heard notes what a far agent has said of a connection: whether it can take one of that lane. The next client of one that
// cannot is not accepted before somebody has asked, and what it is told then counts.
func (a *Agent) heard(lane uint64, far string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil || ofServer(err) {
		delete(a.refusing, refusing{lane, far})
	} else if errors.As(err, new(*trunk.Refused)) && a.lanes[lane] != nil {
		a.refusing[refusing{lane, far}] = struct{}{}
	}
}

// ofServer reports whether a refusal is the server's own: another agent would get the same.
func ofServer(err error) bool {
	var refused *trunk.Refused
	return errors.As(err, &refused) && (refused.Reason == frame.RefusedByHost || refused.Reason == frame.Silence)
}

// atOnce is who can be asked for a client that is to be accepted before anybody has asked the server: its lane says so, and one of
// them is not known to refuse. It is nobody where the client is to wait.
func (a *Agent) atOnce(lane uint64) []*peer {
	a.mu.Lock()
	l := a.lanes[lane]
	says := l != nil && l.AtOnce
	a.mu.Unlock()
	if !says {
		return nil
	}
	all := a.candidates(lane)
	if slices.ContainsFunc(all, func(p *peer) bool { return a.takes(lane, p.name) && p.trunk.Ready() }) {
		return all
	}
	return nil
}

func (a *Agent) takes(lane uint64, far string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, refuses := a.refusing[refusing{lane, far}]
	return !refuses
}

// acceptAtOnce finishes the client's handshake, and then finds a far agent for it. Nobody is asked for a client that only says
// it is there: its handshake proves it. Where nobody can help, or the server does not want it, the client is reset. Those are asked
// who could be before: a drain, or other lanes, that come during the handshake are for clients behind this one.
func (a *Agent) acceptAtOnce(ctx context.Context, syn SYN, asked []*peer) {
	c, own, err := syn.Accept(ctx)
	if err != nil {
		a.Report(Event{Err: fmt.Errorf("the client of %v to %v: %w", syn.Client(), syn.Server(), err)})
		return
	}
	if a.openWith(ctx, openOf(syn), asked, trunk.Attached{Conn: c, Host: syn.Options(), Own: own}) != nil {
		if at, is := c.LocalAddr().(*net.TCPAddr); is && a.Legs != nil {
			a.Legs.Over(syn.Client().String(), syn.Server().String(), at.AddrPort())
		}
		c.SetLinger(0)
		c.Close()
	}
}

// openWith asks the lane's far agents one after the other, as open does, for a client that was accepted. Who has not refused
// may have told the server what the client says: then nobody else is asked.
func (a *Agent) openWith(ctx context.Context, m frame.Open, asked []*peer, client trunk.Attached) error {
	for _, p := range asked {
		err := p.trunk.OpenWith(ctx, m, client)
		a.heard(m.Lane, p.name, err)
		if err == nil || ofServer(err) || !errors.As(err, new(*trunk.Refused)) {
			return err
		}
	}
	return errNobody
}
