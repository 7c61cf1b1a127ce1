package joining

import (
	"net/netip"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/tune"
)

const (
	// mostTold is how many sessions a controller is told of; of what is beyond them it hears the number.
	mostTold = 1 << 16
	// mostChanges is how many changes go into one report: the rest follow in the next.
	mostChanges = 4096
)

// A teller knows which sessions a controller was told of on a stream, and as what.
type teller struct {
	begun bool      // the first look has told all, were it none
	at    time.Time // of the last look
	told  map[sessionKey]*told
	waits map[sessionKey]*waits // of sessions that other agents have opened
}

type sessionKey struct {
	other  string
	number uint64
}

type told struct {
	sent, received         uint64 // at the last look
	sendRate, receiveRate  uint64 // as told
	toldSent, toldReceived uint64
	waits                  waits
	end                    netip.AddrPort // of the client's connection here, as told
	seen                   bool           // in the look that goes on
}

// waits are what a session waits for at this agent, as told.
type waits struct {
	reads, writes tune.Look
	at            netip.AddrPort // this agent's end towards the server, where that is not the client's
	seen          bool
}

func waitsOf(s trunk.SessionStatus) waits {
	w := waits{reads: s.Reads, writes: s.Writes}
	if !s.Mine && s.End != s.Open.Client {
		w.at = s.End
	}
	return w
}

// end is where this agent has its end, as a message.
func (w waits) end() string {
	if !w.at.IsValid() {
		return ""
	}
	return w.at.String()
}

func (w waits) message() *apiv1.BoostWaits {
	return &apiv1.BoostWaits{Reads: w.reads.String(), Writes: w.writes.String()}
}

func newTeller(now time.Time) *teller {
	return &teller{at: now, told: map[sessionKey]*told{}, waits: map[sessionKey]*waits{}}
}

// look goes through the sessions and says what is to be told; nil: nothing. Of those that another agent has opened that one
// tells; here it is what they wait for at this end.
func (t *teller) look(now time.Time, each func(func(string, trunk.SessionStatus))) *apiv1.BoostSessions {
	all := &apiv1.BoostSessions{}
	passed := now.Sub(t.at)
	t.at = now
	each(func(other string, s trunk.SessionStatus) {
		if s.Mine {
			t.see(all, sessionKey{other, s.Open.Session}, s, passed)
		} else {
			t.seeWaits(all, sessionKey{other, s.Open.Session}, s)
		}
	})
	for key, x := range t.told {
		if x.seen {
			x.seen = false
		} else if len(all.Ended)+len(all.Changed) < mostChanges {
			all.Ended = append(all.Ended, &apiv1.BoostSessionEnd{Far: key.other, Number: key.number})
			delete(t.told, key)
		}
	}
	for key, x := range t.waits {
		if x.seen {
			x.seen = false
		} else if len(all.Waits) < mostChanges {
			all.Waits = append(all.Waits, &apiv1.BoostSessionWaits{Near: key.other, Number: key.number})
			delete(t.waits, key)
		}
	}
	if t.begun && len(all.Changed)+len(all.Ended)+len(all.Waits) == 0 {
		return nil
	}
	t.begun = true
	return all
}

// see notes one session, and what of it is news: that it is there, or that its numbers have changed.
func (t *teller) see(all *apiv1.BoostSessions, key sessionKey, s trunk.SessionStatus, passed time.Duration) {
	x, known := t.told[key]
	full := len(all.Changed) >= mostChanges
	if !known {
		if full || len(t.told) >= mostTold {
			return
		}
		x = &told{sent: s.Sent, received: s.Received}
		t.told[key] = x
	}
	sendRate, receiveRate := rate(s.Sent-x.sent, passed), rate(s.Received-x.received, passed)
	x.seen, x.sent, x.received = true, s.Sent, s.Received
	w := waitsOf(s)
	if known && (full || w == x.waits && s.End == x.end && sendRate == x.sendRate && receiveRate == x.receiveRate && s.Sent == x.toldSent && s.Received == x.toldReceived) {
		return
	}
	x.sendRate, x.receiveRate, x.toldSent, x.toldReceived, x.waits, x.end = sendRate, receiveRate, s.Sent, s.Received, w, s.End
	all.Changed = append(all.Changed, &apiv1.BoostSession{
		Number: key.number, Far: key.other, Lane: s.Open.Lane, Client: s.Open.Client.String(), Server: s.Open.Server.String(),
		Sent: s.Sent, Received: s.Received, SendRate: sendRate, ReceiveRate: receiveRate, SinceUnixMs: s.Since.UnixMilli(),
		NearWaits: w.message(), Rewritten: s.End.IsValid() && s.End != s.Open.Server, Opening: !s.End.IsValid(),
	})
}

// seeWaits notes what a session waits for that another agent has opened, and tells it where that has changed. A session of
// which nothing is known yet is none of which there is something to tell.
func (t *teller) seeWaits(all *apiv1.BoostSessions, key sessionKey, s trunk.SessionStatus) {
	now, was := waitsOf(s), t.waits[key]
	if was != nil {
		was.seen = true
		now.seen = true
	}
	first := was == nil && now != (waits{}) && len(t.waits) < mostTold
	if !first && (was == nil || *was == now) || len(all.Waits) >= mostChanges {
		return
	}
	all.Waits = append(all.Waits, &apiv1.BoostSessionWaits{Near: key.other, Number: key.number, Waits: now.message(), At: now.end()})
	now.seen = true
	t.waits[key] = &now
}

func rate(bytes uint64, in time.Duration) uint64 {
	if in <= 0 {
		return 0
	}
	return uint64(float64(bytes) / in.Seconds())
}
