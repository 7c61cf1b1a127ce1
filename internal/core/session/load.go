package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// ErrSaved is in the errors of Load about bytes that no Save of this version wrote.
var ErrSaved = errors.New("not a saved flow of this version")

// Load enters a flow that Save wrote down and goes on with it: what waited for an answer asks again. Its
// address and its peer's come as changes once more, since nobody knows how far the data path had got.
func (e *Engine) Load(now time.Time, b []byte) (Key, error) {
	f, err := parseSaved(b, now.Add(e.cfg.Times.Grace))
	if err != nil {
		return Key{}, err
	}
	if e.flows[f.Key] != nil {
		return f.Key, fmt.Errorf("load flow %v: %w", f.Stable, ErrKnown)
	}
	e.serial++
	f.serial, f.open, f.seek = e.serial, &e.open, &e.seeking
	f.count(1)
	e.enter(f)
	e.goOn(now, f)
	return f.Key, nil
}

// enter makes the flow known under all its names.
func (e *Engine) enter(f *flow) {
	for _, r := range append(f.old[:len(f.old):len(f.old)], retired{Addr: f.Local}) {
		e.bySocket[r.Socket] = f
		if f.state == Connecting {
			e.flows[Key{r.IP(), f.Role}] = f
		}
		if !r.until.IsZero() {
			e.timers.add(r.until, f)
		}
	}
	e.flows[f.Key] = f
}

// goOn takes up what a state waits for.
func (e *Engine) goOn(now time.Time, f *flow) {
	switch f.state {
	case Connecting:
		return
	case Blocked:
		e.change(Change{Kind: Block, Key: f.Key, Reason: wire.HostGone})
		f.timer = now.Add(blockedFor)
		e.timers.add(f.timer, f)
		return
	case Asking, Confirming:
		e.arm(now, f)
		return
	}
	e.change(Change{Kind: Accept, Key: f.Key, Local: f.Local})
	e.change(Change{Kind: Bind, Key: f.Key, Local: f.send, Peer: f.Peer})
	if f.state != Bound {
		e.arm(now, f)
	}
}

// reader takes a saved flow apart; it never reads behind its end, which parseSaved has checked.
type reader []byte

func (r *reader) u8() (n byte)    { n, *r = (*r)[0], (*r)[1:]; return n }
func (r *reader) u16() (n uint16) { n, *r = binary.BigEndian.Uint16(*r), (*r)[2:]; return n }
func (r *reader) u32() (n uint32) { n, *r = binary.BigEndian.Uint32(*r), (*r)[4:]; return n }
func (r *reader) u64() (n uint64) { n, *r = binary.BigEndian.Uint64(*r), (*r)[8:]; return n }
func (r *reader) addr() Addr      { return Addr{sid.Locator(r.u64()), sid.SocketID(r.u64())} }
func (r *reader) ip() netip.Addr {
	a := netip.AddrFrom16([16]byte((*r)[:16]))
	*r = (*r)[16:]
	return a
}

func (r *reader) transport() (t wire.Transport) {
	t.ClientPort, t.ServerPort, t.MSS = r.u16(), r.u16(), r.u16()
	options, scales := r.u8(), r.u8()
	t.SACK, t.Timestamps, t.Scales = options&1 != 0, options&2 != 0, options&4 != 0
	t.ClientScale, t.ServerScale = scales>>4, scales&15
	t.SndUna, t.RcvNxt, t.TSVal, t.TSEcr = r.u32(), r.u32(), r.u32(), r.u32()
	t.Sent, t.Received = r.u64(), r.u64()
	return t
}

// parseSaved reads a flow; what it was called before runs out at the given time.
func parseSaved(b []byte, until time.Time) (*flow, error) {
	if len(b) < savedLen || b[0] != saveVersion || len(b) != savedLen+8*int(b[5])+oldLen*int(b[6]) ||
		b[5] > wire.MaxChain || b[6] > mostSaved {
		return nil, fmt.Errorf("%d bytes: %w", len(b), ErrSaved)
	}
	r := reader(b[1:])
	f := &flow{}
	f.Role, f.Proto, f.state, f.Continue = Role(r.u8()), sid.Proto(r.u8()), State(r.u8()), r.u8()&1 != 0
	chain, old := int(r.u8()), int(r.u8())
	r.u8()
	f.Stable = r.ip()
	f.Service = sid.ServiceID{SS: r.u32(), Suffix: sid.Suffix(r.u64())}
	f.Local, f.Peer, f.send = r.addr(), r.addr(), r.addr()
	f.confirmed = sid.Locator(r.u64())
	f.epoch, f.seen, f.peerSeen, f.asked = r.u32(), r.u32(), r.u32(), int(r.u32())
	f.peerKey = wire.Key(r[:len(f.peerKey)])
	r = r[len(f.peerKey):]
	f.transport = r.transport()
	for range chain {
		f.chain = append(f.chain, sid.SocketID(r.u64()))
	}
	for range old {
		a := retired{Addr: r.addr()}
		if r.u64() != 0 {
			a.until = until
		}
		f.old = append(f.old, a)
	}
	return f, f.plausible()
}

// plausible refuses what no engine wrote: a state that contradicts itself would be our panic later.
func (f *flow) plausible() error {
	peerless := f.state == Connecting || f.state == Blocked || f.state == Asking
	follows := f.state == f.standing() || peerless || f.state == Confirming
	switch {
	case f.Role != Client && f.Role != Server, f.state >= Closed, f.Stable.Is4In6(), !f.Local.Socket.Valid():
	case peerless != (f.Peer == Addr{}), !follows, f.asked > mostAsked:
	default:
		return nil
	}
	return fmt.Errorf("state %d of role %d: %w", f.state, f.Role, ErrSaved)
}
