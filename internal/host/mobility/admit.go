package mobility

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// What is done for messages a second, docs/protocol.md §6.7. A signature takes 50 to 100 µs to check, so that all that
// unknown senders get is a twentieth of a processor; a burst is what many hosts need that fail over at once. Who quotes a
// socketID of ours has seen it; who shows certificates that have passed is a member, or has seen one's messages: the
// daemon does not check more than so many of its messages a second whatever the meter says.
var (
	unknownSenders = struct{ each, all session.Rate }{session.Rate{Second: 32, Burst: 64}, session.Rate{Second: 512, Burst: 2048}}
	informed       = struct{ each, all session.Rate }{session.Rate{Second: 256, Burst: 1024}, session.Rate{Second: 1024, Burst: 4096}}
	members        = struct{ each, all session.Rate }{session.Rate{Second: 8192, Burst: 16384}, session.Rate{Second: 16384, Burst: 32768}}
	// unsigned is for what takes one message to answer, no longer than the question (or twice, for a packet of TCP).
	unsigned = struct{ each, all session.Rate }{session.Rate{Second: 1000, Burst: 1000}, session.Rate{Second: 4000, Burst: 4000}}
	// seeks are PROBEs to unknown senders that are not looked at: a tenth of a client's RESUMEs in the worst flood, of up to 24.
	seeks = struct{ each, all session.Rate }{session.Rate{Second: 16, Burst: 16}, session.Rate{Second: 2000, Burst: 2000}}
)

// gates are the meters of what is done for others. Each is by the locator in the source address, which routers may
// check and nobody else can; what a member has by that of its certificates.
type gates struct {
	unknown, informed, members   *session.Measure
	probes, hints, strays, seeks *session.Measure
}

func newGates() gates {
	return gates{
		unknown:  session.NewMeasure(unknownSenders.each, unknownSenders.all),
		informed: session.NewMeasure(informed.each, informed.all),
		members:  session.NewMeasure(members.each, members.all),
		probes:   session.NewMeasure(unsigned.each, unsigned.all),
		hints:    session.NewMeasure(unsigned.each, unsigned.all),
		seeks:    session.NewMeasure(seeks.each, seeks.all),
		strays:   session.NewMeasure(strayRate, strayRate),
	}
}

// strayRate is that of the edge, which counts too.
var strayRate = session.Rate{Second: 1000, Burst: 1000}

// fewQuoted is how many flows are looked up to find out whether the sender of a message has seen one.
const fewQuoted = 4

// admits reports whether a message's signatures are looked at now, or in an open network what it says.
func (s *inbound) admits(now time.Time, from, to netip.Addr, m wire.Message) bool {
	gate, source := s.gates.unknown, sid.LocatorOf(from)
	auth, _ := wire.AuthOf(m)
	switch {
	case !s.edge.Space().AS.Contains(from):
		return false // nobody here answers there
	case !s.engine.Open() && auth.Signature == nil:
		return true // it is refused without a look
	case s.engine.Acquainted(m):
		gate, source = s.gates.members, senderOf(m)
	case s.quotesOurs(m):
		gate = s.gates.informed
		if s.engine.Open() {
			gate = s.gates.members
		}
	}
	_, resumes := m.(wire.Resume)
	resumes = resumes && gate == s.gates.unknown && !s.engine.Open()
	if resumes && s.reached.lately(now, source) {
		gate = s.gates.informed
	}
	ok := gate.Take(now, source)
	if !ok && resumes {
		s.callBack(now, from, to)
	}
	return ok
}

// senderOf is where a signed message says that its sender is.
func senderOf(m wire.Message) sid.Locator {
	switch m := m.(type) {
	case wire.Renegotiate:
		return m.Locator
	case wire.Resume:
		return m.Locator
	case wire.FlowFail:
		return m.Locator
	}
	return 0
}

// quotesOurs reports whether the message names a socketID of this host, which nobody can guess. Of many it looks at a few.
func (s *inbound) quotesOurs(m wire.Message) bool {
	ids := quoted(m)
	for i := range min(len(ids), fewQuoted) {
		id := ids[i*len(ids)/min(len(ids), fewQuoted)]
		if _, ok := s.engine.Owner(id); ok {
			return true
		}
		if _, ok, err := s.edge.Flow(id); err == nil && ok {
			return true
		}
	}
	return false
}
