package host

import (
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/sid"
)

func refusal(code uint8) Event {
	return Event{Kind: Refused, Code: code, Proto: sid.TCP, ID: 1 << 63, ISN: 7,
		Local: netip.AddrPortFrom(vid, 4000), Peer: netip.AddrPortFrom(webAddr, 80)}
}

func none(Event) []sid.Locator { return nil }

// run lets time pass until nothing is due; answer says whether each question is refused again.
func run(r *Refusals, now time.Time, answer func(now time.Time) bool) (retries, told int, last time.Time) {
	for d := r.Deadline(); !d.IsZero(); d = r.Deadline() {
		r.Expire(d)
		for _, a := range r.Drain() {
			if !a.Retry {
				told, last = told+1, d
				continue
			}
			retries++
			if answer(d) {
				r.Handle(d.Add(100*time.Microsecond), a.Event)
			}
		}
	}
	return retries, told, last
}

func TestRefusalIsToldAMomentLaterAndThrice(t *testing.T) {
	r, now := NewRefusals(none), time.Unix(0, 0)
	r.Handle(now, refusal(3))
	if d := r.Deadline(); !d.After(now) {
		t.Fatal("told at once: the socket may still be in connect()")
	}
	if retries, told, _ := run(r, now, nil); retries != 0 || told != 3 {
		t.Errorf("%d retries, told %d times, want 0 and 3", retries, told)
	}
}

func TestNoSuchPortIsHeldTwentyMilliseconds(t *testing.T) {
	r, now := NewRefusals(none), time.Unix(0, 0)
	r.Handle(now, refusal(4))
	retries, told, last := run(r, now, func(time.Time) bool { return true })
	if retries < 2 || told != 3 || last.Sub(now) > holdLimit+injectDelay+injectAgain+injectLast+time.Millisecond { // the last question has its answer to wait for
		t.Errorf("%d retries, told %d times, the last after %v", retries, told, last.Sub(now))
	}
}

// TestALateRefusalCounts: a switch asks its controller, and a thousand may ask at once.
func TestALateRefusalCounts(t *testing.T) {
	r, now := NewRefusals(none), time.Unix(0, 0)
	r.Handle(now, refusal(4))
	question := r.Deadline()
	r.Expire(question)
	late := question.Add(200 * time.Millisecond)
	for _, a := range r.Drain() {
		r.Expire(late)
		r.Handle(late, a.Event)
	}
	retries, told, first := 0, 0, r.Deadline()
	if retries, told, _ = run(r, late, nil); retries != 0 || told != 3 || first.Sub(late) > time.Millisecond {
		t.Errorf("%d retries, told %d times, first after %v", retries, told, first.Sub(late))
	}
}

func TestAnsweredRetryIsForgotten(t *testing.T) {
	r, now := NewRefusals(none), time.Unix(0, 0)
	r.Handle(now, refusal(4))
	if retries, told, _ := run(r, now, func(time.Time) bool { return false }); retries != 1 || told != 0 {
		t.Errorf("%d retries, told %d times, want 1 and 0", retries, told)
	}
	if len(r.held) > 0 {
		t.Error("still remembered")
	}
}

func TestSYNFromShortQuoteIsPlain(t *testing.T) {
	syn := originalSYN(refusal(4))
	if len(syn) != ip6Len+tcpLen || !bpftest.ChecksumOK(syn) {
		t.Errorf("%x", syn)
	}
}

// TestNoWayIsAskedAgainAndNeverTold: the questions leave out the host to which there is no way, and at the end the kernel goes
// on to ask; also where the only instance was left out, and a router then knew of no other.
func TestNoWayIsAskedAgainAndNeverTold(t *testing.T) {
	for name, then := range map[string]Event{"no way again": noWay(), "nobody else": refusal(4)} {
		t.Run(name, func(t *testing.T) {
			r, now := NewRefusals(none), time.Unix(0, 0)
			r.Handle(now, noWay())
			asked := 0
			for d := r.Deadline(); !d.IsZero(); d = r.Deadline() {
				r.Expire(d)
				for _, a := range r.Drain() {
					if !a.Retry {
						t.Fatal("the socket is told")
					}
					if asked++; asked == 1 && a.Label != sid.NewLabel(0x203, 1) {
						t.Errorf("label %#x of the first question, want retry 1 without host 0x203", a.Label)
					}
					r.Handle(d.Add(100*time.Microsecond), then)
				}
			}
			if asked < 2 || len(r.held) > 0 {
				t.Errorf("%d questions, %d attempts remembered, want at least 2 and none", asked, len(r.held))
			}
		})
	}
}

func noWay() Event {
	ev := refusal(0)
	ev.Refuser = 0x203
	return ev
}
