package session

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// cookieSlot is how long an instance's offer is good for, at least; at most twice that.
const cookieSlot = 16 // seconds

// resume is an instance's side of a failover. Until a RACK echoes the socketID that we offered, nothing
// is kept: a flood of unresolved RSYNs costs time alone.
func (e *Engine) resume(now time.Time, key wire.Key, to netip.Addr, m wire.Resume) {
	c, here := &m.Claim, sid.LocatorOf(to)
	k := Key{c.Stable, Server}
	defer e.finishResume(k, e.beginResume(k, c))
	switch {
	case c.Server:
		e.count("not_authentic")
	case !e.capable[m.Service] || e.cfg.Trust == nil:
		e.decline(wire.Refused, here, m)
	case e.cfg.Forbids != nil && e.cfg.Forbids(m.Service, m.Locator):
		e.decline(wire.Forbidden, here, m)
	case c.Quote == 0:
		e.offer(now, here, m)
	default:
		e.adopt(now, here, key, m)
	}
}

// cookie is the socketID that we offer in the time slot.
func (e *Engine) cookie(slot int64, here sid.Locator, m *wire.Resume) sid.SocketID {
	b := append([]byte(nil), e.cfg.Secret[:]...)
	b = append(b, m.Claim.Stable.AsSlice()...)
	for _, n := range [...]uint64{uint64(slot), uint64(here), uint64(m.Locator), uint64(m.Claim.Epoch),
		uint64(m.Claim.Socket), uint64(m.Service.SS), uint64(m.Service.Suffix)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	id := sid.NewSocketID(binary.BigEndian.Uint64(sum[:]))
	if e.cfg.Offered != nil {
		id = e.cfg.Offered(Addr{m.Locator, m.Claim.Socket}, id)
	}
	return id
}

func (e *Engine) offer(now time.Time, here sid.Locator, m wire.Resume) {
	e.count("offered")
	e.accepted(Addr{here, e.cookie(now.Unix()/cookieSlot, here, &m)}, wire.TypeRSYNACK, m)
}

// accepted sends an instance's claim at epoch 0.
func (e *Engine) accepted(local Addr, kind wire.Type, m wire.Resume) {
	b := e.batch(kind, 0, local.Locator, local.Locator, m.Locator)
	peer := Addr{m.Locator, m.Claim.Socket}
	c := wire.Claim{Stable: m.Claim.Stable, Server: true, Seen: m.Claim.Epoch, Socket: local.Socket, Quote: peer.Socket}
	if e.entry != nil {
		e.said(saidClaim(kind, c))
	}
	b.claims = append(b.claims, addressed[wire.Claim]{local.IP(), peer.IP(), c})
}

// adopt makes the flow. A repeated RACK is answered again; one that we do not hold to is declined, and so is one by
// another member than the peer of a flow that is here: it would end that flow.
func (e *Engine) adopt(now time.Time, here sid.Locator, key wire.Key, m wire.Resume) {
	c, k := &m.Claim, Key{m.Claim.Stable, Server}
	slot := now.Unix() / cookieSlot
	fits := c.Quote == e.cookie(slot, here, &m) || c.Quote == e.cookie(slot-1, here, &m)
	f := e.flows[k]
	dead, ended := e.ended[k]
	switch {
	case f != nil && f.owns(c.Quote) && f.Peer.Socket == c.Socket:
		e.count("known_claim")
		e.claim(wire.TypeRACK, f)
	case !fits || ended && c.Epoch <= dead.seen || f != nil && c.Epoch <= f.seen:
		e.decline(wire.NoSocket, here, m)
	case f != nil && !e.trusts(f, key, m.Locator, AddrOf(c.Stable).Locator):
		e.count("other_key") // a member that has the locator now at which the flow's client began
		e.decline(wire.Refused, here, m)
	default:
		if f != nil {
			e.reset(now, f, wire.Elsewhere) // the client gave our earlier offer up and came again
		}
		e.make(k, Addr{here, c.Quote}, key, m)
	}
}

func (e *Engine) make(k Key, local Addr, key wire.Key, m wire.Resume) {
	peer := Addr{m.Locator, m.Claim.Socket}
	_ = e.Add(Flow{Key: k, Proto: m.Proto, Service: m.Service, Local: local, Peer: peer})
	f := e.flows[k]
	f.seen, f.peerKey, f.transport = m.Claim.Epoch, key, m.Transport
	e.change(Change{Kind: Adopt, Key: k, Local: local, Peer: peer, Service: m.Service, Proto: m.Proto, Transport: m.Transport})
	e.claim(wire.TypeRACK, f)
}

// decline says no.
func (e *Engine) decline(why wire.Reason, here sid.Locator, m wire.Resume) {
	e.count("declined")
	quote := m.Claim.Quote
	if quote == 0 {
		quote = sid.NewSocketID(0)
	}
	e.fail(why, Addr{here, quote}, Addr{m.Locator, m.Claim.Socket}, wire.Failed{Stable: m.Claim.Stable, Epoch: m.Claim.Epoch,
		Server: true, Socket: m.Claim.Socket, Quote: m.Claim.Quote})
}
