package trunk

import "time"

const (
	// measured is how often the kernel is asked how fast the connections are.
	measured = 50 * time.Millisecond
	// asked is how often it is asked what an end host has acknowledged; where many sessions wait, as seldom as makes it
	// one part in twenty of a processor: a question takes about a microsecond.
	asked = 5 * time.Millisecond
	// lookTakes is how much later the next look at all sessions is for each of them: one takes 140 to 310 ns (BenchmarkLook), so
	// all looks take no more than a few parts in a hundred of a processor.
	lookTakes = 10 * time.Microsecond
)

// An alarm is the one timer of a trunk.
type alarm struct {
	ring        *time.Timer
	at          time.Time // zero: it is not set
	measure     time.Time
	look        time.Time
	acknowledge time.Time
}

// arm sets the alarm to the next thing that is due.
func (t *Trunk) arm() {
	if t.closed {
		return
	}
	at := t.sender.Deadline()
	sooner := func(d time.Time) {
		if !d.IsZero() && (at.IsZero() || d.Before(at)) {
			at = d
		}
	}
	sooner(t.receiver.Deadline())
	if len(t.unacked) > 0 {
		sooner(t.alarm.acknowledge)
	}
	if t.resumed != nil {
		sooner(t.resuming.Add(t.Patience))
	}
	if len(t.sessions) > 0 {
		sooner(t.alarm.measure)
		if !t.lonely.IsZero() {
			sooner(t.lonely.Add(t.Patience))
		}
	}
	if at.IsZero() || !t.alarm.at.IsZero() && !at.Before(t.alarm.at) {
		return
	}
	t.alarm.at = at
	t.alarm.ring.Reset(max(time.Until(at), 0))
}

// expire does what is due.
func (t *Trunk) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	now := time.Now()
	t.alarm.at = time.Time{}
	t.sender.Expire(now)
	for _, session := range t.receiver.Expire(now, nil) {
		if s := t.sessions[session]; s != nil {
			wake(s.ready)
		}
	}
	if !now.Before(t.alarm.measure) {
		t.alarm.measure = now.Add(measured)
		rtt := t.measure(now)
		for _, p := range t.paths {
			p.shape(now)
		}
		if !now.Before(t.alarm.look) {
			t.alarm.look = now.Add(max(measured, time.Duration(len(t.sessions))*lookTakes))
			t.look(now, rtt)
		}
	}
	if len(t.unacked) > 0 && !now.Before(t.alarm.acknowledge) {
		t.alarm.acknowledge = now.Add(max(asked, time.Duration(len(t.unacked))*20*time.Microsecond))
		t.acknowledge(now)
	}
	t.isolated(now)
	t.unresumed(now)
	t.changed()
}
