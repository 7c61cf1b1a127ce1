package session

import (
	"net/netip"
	"time"

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
	src, dst := netip.AddrFrom16([16]byte(m.Quote[8:])), netip.AddrFrom16([16]byte(m.Quote[24:]))
	f := e.bySocket[sid.SocketID(sid.Low(src))]
	if f == nil || f.Peer.IP() != dst {
		e.count("stray_fail")
		return
	}
	e.count("hint")
	e.Suspect(now, f.Key)
}

// probe answers for flows whose peer is where the probe comes from, and corrects who believes otherwise.
func (e *Engine) probe(from, to netip.Addr, m wire.Probe) {
	f, asker := e.bySocket[AddrOf(to).Socket], AddrOf(from)
	switch {
	case f != nil && f.Peer == asker:
		e.send(to, from, wire.ProbeAck(m))
	case f != nil:
		e.count("foreign_probe")
		e.fail(wire.Elsewhere, AddrOf(to), asker, wire.Failed{Stable: f.Stable, Epoch: f.seen,
			Server: f.Role == Server, Socket: asker.Socket, Quote: AddrOf(to).Socket})
	default:
		e.probeOfTheDead(from, to)
	}
}

// probeOfTheDead: what ended lately is known by its last address. Of what was never here, since this host
// began anew, nobody knows the stable identifier: the asker finds it by the two socketIDs.
func (e *Engine) probeOfTheDead(from, to netip.Addr) {
	k := e.graves[AddrOf(to).Socket]
	t, ok := e.ended[k]
	if !ok || t.local != AddrOf(to) {
		e.count("stray_probe")
		if !AddrOf(from).Socket.Valid() || !AddrOf(to).Socket.Valid() {
			return
		}
		e.fail(wire.NoSocket, AddrOf(to), AddrOf(from), wire.Failed{Stable: from, Server: true, Socket: AddrOf(from).Socket, Quote: AddrOf(to).Socket})
		return
	}
	e.fail(t.reason, t.local, AddrOf(from), wire.Failed{Stable: k.Stable, Server: k.Role == Server,
		Socket: AddrOf(from).Socket, Quote: t.local.Socket})
}

func (e *Engine) probeAck(to netip.Addr, m wire.ProbeAck) {
	f := e.bySocket[AddrOf(to).Socket]
	if f == nil || f.state != Bound || f.nonce == 0 || f.nonce != m.Nonce {
		e.count("stray_probe")
		return
	}
	f.nonce, f.timer = 0, time.Time{}
	e.change(Change{Kind: Kick, Key: f.Key})
}
