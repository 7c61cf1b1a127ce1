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
	r, now := NewRefusals(), time.Unix(0, 0)
	r.Handle(now, refusal(3))
	if d := r.Deadline(); !d.After(now) {
		t.Fatal("told at once: the socket may still be in connect()")
	}
	if retries, told, _ := run(r, now, nil); retries != 0 || told != 3 {
		t.Errorf("%d retries, told %d times, want 0 and 3", retries, told)
	}
}

func TestNoSuchPortIsHeldTwentyMilliseconds(t *testing.T) {
	r, now := NewRefusals(), time.Unix(0, 0)
	r.Handle(now, refusal(4))
	retries, told, last := run(r, now, func(time.Time) bool { return true })
	if retries < 2 || told != 3 || last.Sub(now) > holdLimit+injectAgain+injectLast {
		t.Errorf("%d retries, told %d times, the last after %v", retries, told, last.Sub(now))
	}
}

// TestALateRefusalCounts: a switch asks its controller, and a thousand may ask at once.
func TestALateRefusalCounts(t *testing.T) {
	r, now := NewRefusals(), time.Unix(0, 0)
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
	r, now := NewRefusals(), time.Unix(0, 0)
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
