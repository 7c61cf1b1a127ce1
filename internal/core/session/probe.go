package session

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Suspect asks the peer of a bound flow whether it is there: its data path is silent, or a router says so.
// A flow in another state asks already.
func (e *Engine) Suspect(now time.Time, k Key) {
	if f := e.flows[k]; f != nil && f.state == Bound && f.nonce == 0 {
		f.nonce = uint64(e.cfg.NewID(f.Local.Locator))
		f.tries, f.wait = 0, e.cfg.Times.First
		e.sendProbe(now, f)
	}
}

func (e *Engine) sendProbe(now time.Time, f *flow) {
	e.send(f.Local.IP(), f.Peer.IP(), wire.Probe{Header: wire.Header{Nonce: f.nonce}})
	e.again(now, f)
}

// hint takes a FAIL that quotes a packet of ours: anybody on the path can send one, so it only asks.
func (e *Engine) hint(now time.Time, m wire.Fail) {
	if len(m.Quote) < wire.MinQuote {
		return
	}
	src, dst := header.IPv6(m.Quote).Src(), header.IPv6(m.Quote).Dst()
	f := e.bySocket[sid.SocketID(sid.Low(src))]
	if f == nil || f.Peer.IP() != dst {
		e.count("stray_fail")
		return
	}
	e.count("hint")
	e.Suspect(now, f.Key)
}

// probe answers for flows whose peer is where the probe comes from. Who believes otherwise is corrected once it has
// shown that it is there: what corrects it is signed and five times as long, and anybody can write an address.
func (e *Engine) probe(now time.Time, from, to netip.Addr, m wire.Probe) {
	f := e.bySocket[AddrOf(to).Socket]
	if f != nil && (f.Peer == AddrOf(from) || f.state == Asking && m.KeyID == wire.ReturnPath) { // whom it asks may want to know that it is there
		e.send(to, from, wire.ProbeAck(m))
		return
	}
	if f != nil {
		e.count("foreign_probe")
	} else {
		e.count("stray_probe")
	}
	if m.KeyID != wire.ReturnPath && AddrOf(from).Socket.Valid() && AddrOf(to).Socket.Valid() { // else two hosts would ask each other for ever
		e.send(to, from, wire.Probe{Header: wire.Header{KeyID: wire.ReturnPath, Nonce: e.returnNonce(now.Unix()/cookieSlot, from, to)}})
	}
}

// returnNonce is what only who is at the address from can send back. Nothing is kept.
func (e *Engine) returnNonce(slot int64, from, to netip.Addr) uint64 {
	b := append(e.cfg.Secret[:len(e.cfg.Secret):len(e.cfg.Secret)], "return path"...)
	b = append(append(b, from.AsSlice()...), to.AsSlice()...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(slot)))
	return binary.BigEndian.Uint64(sum[:])
}

// Returned reports whether a PROBE-ACK is the answer to the question behind a PROBE that was not its flow's peer's.
func (e *Engine) Returned(now time.Time, from, to netip.Addr, m wire.ProbeAck) bool {
	slot := now.Unix() / cookieSlot
	return m.KeyID == wire.ReturnPath && (m.Nonce == e.returnNonce(slot, from, to) || m.Nonce == e.returnNonce(slot-1, from, to))
}

// correct tells who probed and is not the flow's peer. What ended lately is known by its last address. Of what was
// never here, since this host began anew, nobody knows the stable identifier: the asker finds it by the two socketIDs.
func (e *Engine) correct(from, to netip.Addr) {
	asker, ours := AddrOf(from), AddrOf(to)
	k := e.endedBySocket[ours.Socket]
	t, dead := e.ended[k]
	switch f := e.bySocket[ours.Socket]; {
	case f != nil && f.Peer == asker: // it became so meanwhile
	case f != nil:
		e.fail(wire.Elsewhere, ours, asker, wire.Failed{Stable: f.Stable, Epoch: f.seen, Server: f.Role == Server, Socket: asker.Socket, Quote: ours.Socket})
	case dead && t.local == ours:
		e.fail(t.reason, ours, asker, wire.Failed{Stable: k.Stable, Server: k.Role == Server, Socket: asker.Socket, Quote: ours.Socket})
	default:
		e.fail(wire.NoSocket, ours, asker, wire.Failed{Stable: from, Server: true, Socket: asker.Socket, Quote: ours.Socket})
	}
}

func (e *Engine) probeAck(now time.Time, from, to netip.Addr, m wire.ProbeAck) {
	if e.Returned(now, from, to, m) {
		e.correct(from, to)
		return
	}
	f := e.bySocket[AddrOf(to).Socket]
	if f == nil || f.state != Bound || f.nonce == 0 || f.nonce != m.Nonce {
		e.count("stray_probe")
		return
	}
	f.nonce, f.timer = 0, time.Time{}
	e.change(Change{Kind: Kick, Key: f.Key})
}
