package mobility

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// Of what the engine holds the edge keeps a copy, in a pinned map: a daemon that is killed in the middle of
// a move goes on with the next one.

// heldLen is what stands before a saved flow: the edge's flow that it is.
const heldLen = 16 + 2 + 16 + 2 + 1 + 8

// save writes down what changed, before anybody hears of it.
func (s *flows) save() {
	keep := map[host.SessionKey][]byte{}
	var errs error
	for _, k := range s.engine.Touched() {
		b := s.engine.Save(k)
		if h, ok := s.held[k]; ok && b != nil {
			keep[sessionKey(k)] = append(h.append(make([]byte, 0, heldLen+len(b))), b...)
			continue
		}
		s.release(k)
		errs = errors.Join(errs, s.edge.DeleteSession(sessionKey(k)))
	}
	if len(keep) > 0 {
		errs = errors.Join(errs, s.edge.PutSessions(keep))
	}
	if errs != nil {
		s.counters["unsaved"]++
		s.log.Warn("a restart will not know of the moves of some flows", "flows", len(keep), "error", errs)
	}
}

func sessionKey(k session.Key) (b host.SessionKey) {
	stable := k.Stable.As16()
	copy(b[:], stable[:])
	b[16] = byte(k.Role)
	return b
}

func (h held) append(b []byte) []byte {
	for _, ap := range [...]netip.AddrPort{h.tuple.Local, h.tuple.Remote} {
		a := ap.Addr().As16()
		b = append(b, a[:]...)
		b = binary.BigEndian.AppendUint16(b, ap.Port())
	}
	proto := byte(h.tuple.Proto)
	if h.tuple.Guest != 0 {
		proto |= ofGuest
	}
	b = binary.BigEndian.AppendUint64(append(b, proto), uint64(h.birth))
	if h.tuple.Guest != 0 {
		b = binary.BigEndian.AppendUint16(b, h.tuple.Guest)
	}
	return b
}

// ofGuest stands beside the protocol where the guest's number follows.
const ofGuest = 0x80

var errSession = errors.New("not a flow that a daemon of this version saved")

func parseHeld(b []byte) (h held, rest []byte, err error) {
	if len(b) < heldLen {
		return h, nil, errSession
	}
	at := func(b []byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)), binary.BigEndian.Uint16(b[16:]))
	}
	h.tuple = host.Tuple{Local: at(b), Remote: at(b[18:]), Proto: sid.Proto(b[36])}
	h.birth = sid.SocketID(binary.BigEndian.Uint64(b[37:]))
	rest = b[heldLen:]
	if b[36]&ofGuest != 0 {
		if len(rest) < 2 {
			return h, nil, errSession
		}
		h.tuple.Proto = sid.Proto(b[36] &^ ofGuest)
		if h.tuple.Guest, rest = binary.BigEndian.Uint16(rest), rest[2:]; h.tuple.Guest == 0 {
			return h, nil, errSession
		}
	}
	return h, rest, nil
}

// leastWindow is what a new instance may send before the client's socket has told it more.
const leastWindow = 512

// load takes up what a daemon before this one has left.
func (s *flows) load(now time.Time) {
	all := map[host.SessionKey][]byte{}
	err := s.edge.AllSessions(func(k host.SessionKey, b []byte) bool { all[k] = b; return true })
	if err != nil {
		s.log.Warn("what moved before this daemon began stays where it is", "error", err)
	}
	n := 0
	for key, b := range all {
		if err := s.loadFlow(now, b); err != nil {
			s.edge.DeleteSession(key) //nolint:errcheck // it is looked at again
			s.log.Debug("saved flow", "error", err)
			continue
		}
		n++
	}
	if n > 0 {
		s.log.Info("took up flows that had moved", "flows", n)
	}
}

var errGone = errors.New("the flow is gone")

func (s *flows) loadFlow(now time.Time, b []byte) error {
	h, rest, err := parseHeld(b)
	if err != nil {
		return err
	}
	f, there, err := s.edge.Lookup(h.tuple)
	if err != nil || !there || h.replacedBy(f) {
		return errors.Join(err, errGone)
	}
	k, err := s.engine.Load(now, rest)
	if err != nil {
		return err
	}
	s.hold(k, h)
	s.history.Begin(k, f)
	v, _ := s.engine.View(k)
	switch {
	case v.State == session.Connecting && f.State == host.BoundFlow:
		s.established(now, f)
	case v.State == session.Asking, v.State == session.Confirming:
		s.resumes[k] = &resume{transport: v.Transport, window: leastWindow, asking: true}
	}
	return nil
}
