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

// How the many flows of an instance that dies look for the next one. It checks two signatures for each, and makes a
// connection: asked by ten thousand at once, and again every 20 ms, it would drop most of what they say and have none
// made when the last of them has asked mostAsked times.
const (
	perAsk  = 300 * time.Microsecond // between two that ask, where more than patientOver do
	seekFor = 100 * time.Millisecond // how long nothing is asked again while instances answer some of them,
	seeks   = 20                     // so often for one flow
)

// stillServed: among so many, instances may not have come yet to a flow that has asked as often as it may.
func (e *Engine) stillServed(now time.Time) bool {
	return e.seeking > patientOver && now.Sub(e.lastHeard) < workFor
}

// inTurn reports whether a flow may ask now, and if not when.
func (e *Engine) inTurn(now time.Time) (at time.Time, ok bool) {
	if least := now.Add(-patientOver * perAsk); e.pace.Before(least) {
		e.pace = least
	}
	at = e.pace.Add(perAsk)
	if at.After(now) {
		e.pace = at
		return at, false
	}
	e.pace = at
	return at, true
}

// ready reports whether the flow asks now; else it waits, for its turn or because instances are at work.
func (e *Engine) ready(now time.Time, f *flow) bool {
	if f.turn {
		f.turn = false
		return true
	}
	if e.seeking > patientOver && f.asked > 0 && now.Sub(e.lastHeard) < patientFor && f.waits < seeks {
		f.waits++
		e.askAgain(f, now.Add(seekFor))
		return false
	}
	at, ok := e.inTurn(now)
	if !ok {
		f.turn = true
		e.askAgain(f, at)
	}
	return ok
}

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
		defer e.finish(f, e.begin(f, "continue", nil))
		f.transport = t
		e.touch(f)
		f.become(Asking)
		f.waits, f.turn = 0, false
		if e.ready(now, f) {
			e.ask(now, f)
		}
	}
}

// calm puts off that a confirmation is repeated while instances answer others.
func (e *Engine) calm(now time.Time, f *flow) bool {
	if e.seeking <= patientOver || now.Sub(e.lastHeard) >= patientFor || f.waits >= seeks {
		return false
	}
	f.waits++
	e.askAgain(f, now.Add(seekFor))
	return true
}

// Reread gives the state of the transport anew while no instance has been told to go on from it.
func (e *Engine) Reread(k Key, t wire.Transport) {
	if f := e.flows[k]; f != nil && f.state == Asking {
		f.transport = t
		e.touch(f)
	}
}

// Abandon resets a flow.
func (e *Engine) Abandon(now time.Time, k Key, why wire.Reason) {
	if f := e.flows[k]; f != nil {
		defer e.finish(f, e.begin(f, "abandon", nil))
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
	f.waits = 0
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
	if e.entry != nil {
		e.said(saidClaim(wire.TypeResume, m.Claim))
	}
	return e.sign(m, f.Local.Locator, AddrOf(f.Stable).Locator)
}

// answered: an instance offers to go on. The first one is taken; others keep nothing.
func (e *Engine) answered(now time.Time, f *flow, key wire.Key, m wire.Renegotiate, c *wire.Claim) {
	if m.Kind != wire.TypeRSYNACK || c.Quote != f.Local.Socket || c.Epoch != 0 || c.Seen != f.epoch {
		e.refuse(wire.Elsewhere, m, c)
		return
	}
	e.lastHeard = now
	f.Peer, f.peerKey = Addr{m.Locator, c.Socket}, key
	f.seen, f.peerSeen = 0, f.epoch
	f.become(Confirming)
	f.tries, f.waits, f.turn, f.wait = 0, 0, false, e.cfg.Times.First/2+time.Duration(min(e.seeking, 1000))*perFlow
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
