package session

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Move renegotiates all flows that stand at one locator of this host for another one.
func (e *Engine) Move(now time.Time, from, to sid.Locator) {
	d := e.Depart(from, to)
	e.Advance(now, d, len(d.left))
}

// A Departure is a move of many flows, some at a time: the peer is at work on the first while the last are yet
// to move.
type Departure struct {
	from, to sid.Locator
	left     []*flow
}

// Depart begins the move of all flows that stand at one locator of this host for another one; Advance goes on.
func (e *Engine) Depart(from, to sid.Locator) *Departure {
	return &Departure{from, to, e.sorted(func(f *flow) bool { return f.Local.Locator == from })}
}

// Advance moves so many flows of the departure at most, and says whether some are left. What has gone elsewhere
// since is left alone.
func (e *Engine) Advance(now time.Time, d *Departure, most int) (more bool) {
	part := d.left[:min(most, len(d.left))]
	d.left = d.left[len(part):]
	for i, f := range part {
		e.leaving = len(part) - i
		if e.flows[f.Key] == f && f.Local.Locator == d.from {
			e.move(now, f, d.to)
		}
	}
	e.leaving = 0
	return len(d.left) > 0
}

// Reroute leads what is left elsewhere, where the locator that it was to go to is given up in its turn.
func (d *Departure) Reroute(from, to sid.Locator) {
	if d.to == from {
		d.to = to
	}
}

// sorted lists the flows for which want holds, in the order in which they came.
func (e *Engine) sorted(want func(*flow) bool) (all []*flow) {
	for k, f := range e.flows {
		if f.Key == k && want(f) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *flow) int { return cmp.Compare(a.serial, b.serial) })
	return all
}

// MoveFlow renegotiates one flow.
func (e *Engine) MoveFlow(now time.Time, k Key, to sid.Locator) {
	if f := e.flows[k]; f != nil && f.Local.Locator != to {
		e.move(now, f, to)
	}
}

func (e *Engine) move(now time.Time, f *flow, to sid.Locator) {
	defer e.finish(f, e.begin(f, "move", nil))
	e.touch(f)
	was := f.state
	if was == Connecting {
		e.fresh(f, to)
		f.send = f.Local
		e.flows[Key{f.Local.IP(), f.Role}] = f
		e.change(Change{Kind: Retry, Key: f.Key, Local: f.Local})
		return
	}
	if was == Confirming {
		e.tellAbandoned(f)
	}
	f.epoch++
	switch was {
	case Blocked:
		e.elsewhere(f, to)
	case Asking, Confirming:
		e.elsewhere(f, to)
		f.become(Asking)
		e.ask(now, f)
	default:
		e.fresh(f, to)
		f.become(Moving)
		e.arm(now, f)
		e.claim(wire.TypeRSYN, f)
	}
}

// elsewhere moves an end that has no peer.
func (e *Engine) elsewhere(f *flow, to sid.Locator) {
	delete(e.bySocket, f.Local.Socket)
	f.Local.Locator, f.Peer = to, Addr{}
	e.renew(f)
}

// fresh gives the end a new socketID; the one before is accepted until the peer knows the new one. With a
// full chain it keeps its socketID, and only its place is new (docs/protocol.md §6.2).
func (e *Engine) fresh(f *flow, at sid.Locator) {
	before := f.Local
	f.Local.Locator = at
	if len(f.chain) < wire.MaxChain {
		f.chain = append(slices.Clone(f.chain), before.Socket)
		f.Local.Socket = e.cfg.NewID(at)
	}
	if f.Local != before {
		f.old = append(f.old, retired{Addr: before})
		e.bySocket[f.Local.Socket] = f
		e.change(Change{Kind: Accept, Key: f.Key, Local: f.Local})
	}
	f.nonce = 0
}

// Established tells of a connecting client's flow that the attempt from the address at was answered by
// the peer. The flow's stable identifier is that attempt's; if this host moved meanwhile, so does the flow.
func (e *Engine) Established(now time.Time, at netip.Addr, peer Addr) {
	f := e.flows[Key{at, Client}]
	if f == nil || f.state != Connecting {
		return
	}
	where := f.Local.Locator
	e.settle(f, at, peer)
	f.become(Bound)
	e.change(Change{Kind: Bind, Key: f.Key, Local: f.send, Peer: f.Peer})
	if where != f.Local.Locator {
		e.move(now, f, where)
	}
}

// settle makes one attempt of a connecting flow the flow.
func (e *Engine) settle(f *flow, at netip.Addr, peer Addr) {
	for _, r := range append(f.old, retired{Addr: f.Local}) {
		delete(e.flows, Key{r.IP(), f.Role})
		delete(e.bySocket, r.Socket)
	}
	delete(e.flows, f.Key)
	e.touch(f) // both of its names
	defer e.touch(f)
	f.Stable, f.Local, f.Peer = at, AddrOf(at), peer
	f.old, f.chain, f.send, f.confirmed = nil, nil, f.Local, f.Local.Locator
	e.flows[f.Key], e.bySocket[f.Local.Socket] = f, f
}
