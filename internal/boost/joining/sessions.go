package joining

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/trunk"
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
}

type sessionKey struct {
	other  string
	number uint64
}

type told struct {
	sent, received         uint64 // at the last look
	sendRate, receiveRate  uint64 // as told
	toldSent, toldReceived uint64
	seen                   bool // in the look that goes on
}

func newTeller(now time.Time) *teller { return &teller{at: now, told: map[sessionKey]*told{}} }

// look goes through the sessions that were opened here and says what is to be told; nil: nothing.
func (t *teller) look(now time.Time, each func(func(string, trunk.SessionStatus))) *apiv1.BoostSessions {
	all := &apiv1.BoostSessions{}
	passed := now.Sub(t.at)
	t.at = now
	each(func(other string, s trunk.SessionStatus) {
		if s.Mine {
			t.see(all, sessionKey{other, s.Open.Session}, s, passed)
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
	if t.begun && len(all.Changed)+len(all.Ended) == 0 {
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
	if known && (full || sendRate == x.sendRate && receiveRate == x.receiveRate && s.Sent == x.toldSent && s.Received == x.toldReceived) {
		return
	}
	x.sendRate, x.receiveRate, x.toldSent, x.toldReceived = sendRate, receiveRate, s.Sent, s.Received
	all.Changed = append(all.Changed, &apiv1.BoostSession{
		Number: key.number, Far: key.other, Lane: s.Open.Lane, Client: s.Open.Client.String(), Server: s.Open.Server.String(),
		Sent: s.Sent, Received: s.Received, SendRate: sendRate, ReceiveRate: receiveRate, SinceUnixMs: s.Since.UnixMilli(),
	})
}

func rate(bytes uint64, in time.Duration) uint64 {
	if in <= 0 {
		return 0
	}
	return uint64(float64(bytes) / in.Seconds())
}
