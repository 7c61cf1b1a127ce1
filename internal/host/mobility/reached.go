package mobility

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Of a flood of RESUMEs with made-up sources nothing tells the one of a client that nobody here has met: its certificates
// are as unknown as theirs. When there are more than are looked at, the sender is asked by a PROBE whether it is there.
// A client that looks for an instance answers, and is heard when it asks again, 20 ms later; who makes addresses up never
// sees the PROBE, which is shorter than what it answers.
const (
	reachedFor  = 60 * time.Second
	reachedSlot = 16 // seconds for which a nonce is good, at least; at most twice that
	mostReached = 4096
)

// reached are the locators at which somebody answered, and when.
type reached map[sid.Locator]time.Time

// lately reports whether somebody answered at the locator.
func (r reached) lately(now time.Time, l sid.Locator) bool {
	at, ok := r[l]
	return ok && now.Sub(at) < reachedFor
}

func (r reached) add(now time.Time, l sid.Locator) {
	if len(r) >= mostReached {
		clear(r) // they are asked once more
	}
	r[l] = now
}

// callBack asks whether the sender of a RESUME is there.
func (s *inbound) callBack(now time.Time, from, to netip.Addr) {
	if s.gates.seeks.Take(now, sid.LocatorOf(from)) {
		s.counters["sought"]++
		nonce := s.edge.ProbeNonceOf(s.seekNumber(now.Unix()/reachedSlot, from))
		s.send([]session.Outgoing{{From: sid.LocatorOf(to).Host(), To: from, Message: wire.Probe{Header: wire.Header{KeyID: wire.ReturnPath, Nonce: nonce}}}})
	}
}

// sought takes what comes back for one that was sought. False: it is no such answer.
func (s *inbound) sought(now time.Time, from netip.Addr, m wire.ProbeAck) bool {
	slot := now.Unix() / reachedSlot
	for _, slot := range []int64{slot, slot - 1} {
		if m.KeyID == wire.ReturnPath && m.Nonce == s.edge.ProbeNonceOf(s.seekNumber(slot, from)) {
			s.reached.add(now, sid.LocatorOf(from))
			return true
		}
	}
	return false
}

// seekNumber is what only who is at the address hears. The edge adds what it knows an answer by.
func (s *inbound) seekNumber(slot int64, from netip.Addr) uint32 {
	b := append(s.secret[:len(s.secret):len(s.secret)], from.AsSlice()...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(slot)))
	return binary.BigEndian.Uint32(sum[:])
}
