package session

import (
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// renegotiate takes the claims of an RSYN, RSYN-ACK or RACK.
func (e *Engine) renegotiate(now time.Time, key wire.Key, m wire.Renegotiate) {
	for i := range m.Claims {
		e.consider(now, key, m, &m.Claims[i])
	}
}

// consider takes one of them.
func (e *Engine) consider(now time.Time, key wire.Key, m wire.Renegotiate, c *wire.Claim) {
	k := Key{c.Stable, Server}
	if c.Server {
		k.Role = Client
	}
	f := e.flows[k]
	if e.cfg.Journal != nil {
		in := saidClaim(m.Kind, *c)
		defer e.finish(f, e.begin(f, in.Kind, &in))
	}
	e.touch(f)
	switch {
	case f == nil:
		e.unknown(k, m, c)
	case f.state == Asking:
		e.answered(now, f, key, m, c)
	case f.state == Connecting && f.owns(c.Quote) && c.Stable == e.attempt(f, c.Quote):
		e.met(now, f, key, m, c)
	case f.state != Blocked:
		e.weigh(now, f, key, m, c)
	}
}

// attempt is the stable identifier of a connecting flow's attempt under the socketID.
func (e *Engine) attempt(f *flow, s sid.SocketID) (ip netip.Addr) {
	for _, r := range append(f.old, retired{Addr: f.Local}) {
		if r.Socket == s {
			return r.IP()
		}
	}
	return ip
}

// met: the server moved before the client's data path saw its first packet, so the claim binds the flow.
func (e *Engine) met(now time.Time, f *flow, key wire.Key, m wire.Renegotiate, c *wire.Claim) {
	where := f.Local.Locator
	e.settle(f, c.Stable, Addr{m.Locator, c.Socket})
	f.become(Bound)
	f.peerKey = key
	e.take(now, f, m, c)
	if where != f.Local.Locator {
		e.move(now, f, where)
	}
}

// weigh decides what a claim is: new, known, late, or that of another copy of the peer. What names an
// address that the committed peer had before is refused like a copy's: its sender, if it is the peer, has
// another one by now and is not meant.
func (e *Engine) weigh(now time.Time, f *flow, key wire.Key, m wire.Renegotiate, c *wire.Claim) {
	newer := c.Epoch > f.seen || c.Epoch == f.seen && c.Seen > f.peerSeen
	same := c.Epoch == f.seen && c.Seen == f.peerSeen && f.Peer == Addr{m.Locator, c.Socket}
	switch {
	case !e.trusts(f, key, m.Locator, m.Old):
		e.count("other_key")
	case c.Seen > f.epoch:
		e.count("impossible_claim")
	case newer && f.outstanding(c.Quote) && (c.Socket == f.Peer.Socket || slices.Contains(c.Chain, f.Peer.Socket)):
		f.peerKey = key
		e.take(now, f, m, c)
	case same && f.state == Confirming && m.Kind != wire.TypeRACK:
		e.count("late_claim") // the instance's offer again: only its RACK says that it made the flow
	case f.owns(c.Quote) && same:
		e.count("known_claim")
		e.heard(now, f, c)
		e.reply(m.Kind, f)
	case c.Socket == f.Peer.Socket:
		e.count("late_claim")
	default:
		e.refuse(wire.Elsewhere, m, c)
	}
}

// outstanding: s is ours, and no newer one was quoted by the peer. What the committed peer has confirmed
// it keeps on quoting; a copy of it that knows less was made before.
func (f *flow) outstanding(s sid.SocketID) bool {
	return s == f.Local.Socket || slices.Contains(f.chain, s)
}

// take commits to the peer's new address.
func (e *Engine) take(now time.Time, f *flow, m wire.Renegotiate, c *wire.Claim) {
	moved := c.Epoch > f.seen
	f.Peer, f.seen, f.peerSeen = Addr{m.Locator, c.Socket}, c.Epoch, c.Seen
	if !moved {
		e.heard(now, f, c)
		e.bind(f)
		e.reply(m.Kind, f)
		return
	}
	e.heard(now, f, c)
	e.fresh(f, f.Local.Locator)
	f.become(f.standing())
	e.bind(f)
	e.arm(now, f)
	e.reply(wire.TypeRSYN, f)
}

// heard draws from a claim of the committed peer what the peer knows of us.
func (e *Engine) heard(now time.Time, f *flow, c *wire.Claim) {
	e.lastHeard = now
	if i := slices.Index(f.chain, c.Quote); i > 0 {
		f.chain = slices.Clone(f.chain[i:]) // it has taken that one, so it never names an earlier one
	}
	if c.Quote == f.Local.Socket {
		e.known(now, f)
	}
	was := f.state
	f.become(f.standing())
	if f.state == Bound && was != Bound {
		f.timer = time.Time{}
		e.bind(f)
	}
	if f.state == Answering && was == Moving {
		e.bind(f)
		e.arm(now, f)
	}
}

// known: the peer quoted our newest socketID, so the earlier ones need a grace time only.
func (e *Engine) known(now time.Time, f *flow) {
	f.chain, f.confirmed = nil, f.Local.Locator
	until := now.Add(e.cfg.Times.Grace)
	for i := range f.old {
		if r := &f.old[i]; r.until.IsZero() {
			r.until = until
			e.change(Change{Kind: Accept, Key: f.Key, Local: r.Addr, Until: until})
			e.timers.add(until, f)
		}
	}
}

// bind tells the data path where packets go, and from where once the peer takes them from there.
func (e *Engine) bind(f *flow) {
	if f.peerSeen == f.epoch {
		f.send = f.Local
	}
	c := Change{Kind: Bind, Key: f.Key, Local: f.send, Peer: f.Peer}
	if last := len(e.out.changes) - 1; last < 0 || e.out.changes[last] != c { // said just now
		e.change(c)
	}
}

// reply answers a message of the committed peer.
func (e *Engine) reply(to wire.Type, f *flow) {
	switch to {
	case wire.TypeRSYN:
		e.claim(wire.TypeRSYNACK, f)
	case wire.TypeRSYNACK:
		e.claim(wire.TypeRACK, f)
	}
}

// unknown answers a claim for a flow that is not here.
func (e *Engine) unknown(k Key, m wire.Renegotiate, c *wire.Claim) {
	why := wire.NoSocket
	if t, ok := e.ended[k]; ok {
		why = t.reason
	}
	e.refuse(why, m, c)
}

// refuse tells the sender of a claim that it is not taken. A RACK wants no answer.
func (e *Engine) refuse(why wire.Reason, m wire.Renegotiate, c *wire.Claim) {
	e.count("refused_claim")
	if m.Kind == wire.TypeRACK || c.Quote == 0 {
		return
	}
	e.fail(why, AddrOf(e.here), Addr{m.Locator, c.Socket},
		wire.Failed{Stable: c.Stable, Epoch: c.Epoch, Server: !c.Server, Socket: c.Socket, Quote: c.Quote})
}
