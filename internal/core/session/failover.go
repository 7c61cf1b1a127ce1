package session

import (
	"time"

	"scaffold.dev/scaffold/wire"
)

// How patient a failover is.
const (
	blockedFor   = 5 * time.Second // for Continue or Close, after Block
	confirmTries = 6               // RACKs to one instance
	mostAsked    = 24              // messages of one failover, then no instance can
	askMost      = 200 * time.Millisecond
	refusedPause = 3 * time.Millisecond // after all have refused: routers need so long to hear which instance is gone
	retries      = 4                    // values of the retry count, by which routers choose
)

// block stops the flow: nothing that the old peer sends may arrive behind the snapshot.
func (e *Engine) block(now time.Time, f *flow, why wire.Reason) {
	e.change(Change{Kind: Block, Key: f.Key, Reason: why})
	f.become(Blocked)
	f.epoch++
	e.renew(f)
	f.Peer, f.peerKey, f.asked, f.forbidden = Addr{}, wire.Key{}, 0, false
	f.timer = now.Add(blockedFor)
	e.timers.add(f.timer, f)
}

// renew gives the end a new socketID that no peer was told, and forgets all earlier ones at once.
func (e *Engine) renew(f *flow) {
	e.touch(f)
	for _, r := range append(f.old, retired{Addr: f.Local}) {
		delete(e.bySocket, r.Socket)
	}
	f.Local.Socket = e.cfg.NewID(f.Local.Locator)
	f.old, f.chain, f.send, f.nonce = nil, nil, f.Local, 0
	f.confirmed = f.Local.Locator
	e.bySocket[f.Local.Socket] = f
}

// Continue gives the state of a blocked flow's transport; the engine looks for an instance that goes on.
// A data path whose state cannot be carried on (segments out of order) calls Abandon instead.
func (e *Engine) Continue(now time.Time, k Key, t wire.Transport) {
	if f := e.flows[k]; f != nil && f.state == Blocked {
		f.transport = t
		e.touch(f)
		f.become(Asking)
		e.ask(now, f)
	}
}

// Abandon resets a flow.
func (e *Engine) Abandon(now time.Time, k Key, why wire.Reason) {
	if f := e.flows[k]; f != nil {
		e.reset(now, f, why)
	}
}

// ask sends the unresolved RSYN; each time a service router may choose another instance.
func (e *Engine) ask(now time.Time, f *flow) {
	if f.asked == mostAsked {
		why := wire.NoInstance
		if f.forbidden {
			why = wire.Forbidden
		}
		e.reset(now, f, why)
		return
	}
	m := e.resumption(f)
	e.out.single = append(e.out.single, Outgoing{From: f.Local.IP(), To: e.cfg.Space.ServiceAddr(f.Service),
		Retry: uint8(f.asked % retries), Message: m})
	e.askAgain(f, now.Add(min(e.cfg.Times.First<<(f.asked/retries), askMost)))
	f.asked++
	e.touch(f)
}

func (e *Engine) askAgain(f *flow, at time.Time) {
	f.timer = at
	e.timers.add(at, f)
}

// refused: an instance that cannot. Another one is asked at once. After each has refused all are asked again in a
// while: soon at first, since the one that is gone may have been among them more than once.
//
// One that forbids it ends the search no sooner than others: it may not have heard of a right that was just given.
func (e *Engine) refused(now time.Time, f *flow, why wire.Reason) {
	f.forbidden = f.forbidden || why == wire.Forbidden
	if f.asked%retries != 0 {
		e.ask(now, f)
		return
	}
	if at := now.Add(refusedPause << (2 * (f.asked/retries - 1))); at.Before(f.timer) {
		e.askAgain(f, at)
	}
}

func (e *Engine) resumption(f *flow) wire.Message {
	m := wire.Resume{Locator: f.Local.Locator, Claim: f.claimed(f.Peer.Socket), Service: f.Service, Proto: f.Proto, Transport: f.transport}
	return e.sign(m, f.Local.Locator, AddrOf(f.Stable).Locator)
}

// answered: an instance offers to go on. The first one is taken; others keep nothing.
func (e *Engine) answered(now time.Time, f *flow, key wire.Key, m wire.Renegotiate, c *wire.Claim) {
	if m.Kind != wire.TypeRSYNACK || c.Quote != f.Local.Socket || c.Epoch != 0 || c.Seen != f.epoch {
		e.refuse(wire.Elsewhere, m, c)
		return
	}
	f.Peer, f.peerKey = Addr{m.Locator, c.Socket}, key
	f.seen, f.peerSeen = 0, f.epoch
	f.become(Confirming)
	f.tries, f.wait = 0, e.cfg.Times.First/2
	e.confirm(now, f)
}

// confirm sends the RACK that makes the flow at the instance.
func (e *Engine) confirm(now time.Time, f *flow) {
	e.send(f.Local.IP(), f.Peer.IP(), e.resumption(f))
	f.asked = min(f.asked+1, mostAsked)
	e.touch(f)
	e.again(now, f)
}

// askAnew gives the instance up.
func (e *Engine) askAnew(now time.Time, f *flow) {
	e.tellAbandoned(f)
	f.epoch++
	e.renew(f)
	f.Peer, f.peerKey = Addr{}, wire.Key{}
	f.become(Asking)
	e.ask(now, f)
}

// tellAbandoned: should the instance have made the flow, it hears that we are not there.
func (e *Engine) tellAbandoned(f *flow) {
	e.fail(wire.Elsewhere, f.Local, f.Peer, wire.Failed{Stable: f.Stable, Server: f.Role == Server,
		Socket: f.Peer.Socket, Quote: f.Local.Socket})
}
