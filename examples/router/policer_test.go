package main

import (
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/run"
	"scaffold.dev/scaffold/emu/traffic"
)

// A scene is two senders, the policer and a receiver, in virtual time: no root, the same in each run.
type scene struct {
	*emu.Net
	policer *policer
	router  *emu.Router
	slow    *traffic.Source // 1 Mbit/s
	fast    *traffic.Source // 8 Mbit/s
	sink    *perSender
}

// perSender counts the bytes of each sender that arrive.
type perSender map[sender]int

func (s perSender) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		s[senderOf(&batch[i], r.Bytes(&batch[i]))] += batch[i].Len()
		batch[i].Port = emu.Drop
	}
}

func source(from string, gap time.Duration) *traffic.Source {
	return &traffic.Source{From: netip.MustParseAddr(from), To: []netip.Addr{netip.MustParseAddr("fd09::1")}, Size: 1014, Gap: gap}
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{Net: emu.New(emu.Options{Virtual: true, Log: t.Logf}), sink: &perSender{},
		slow: source("fd01::1", 8*time.Millisecond), fast: source("fd02::1", time.Millisecond)}
	t.Cleanup(func() { s.Close() })
	made, err := newProgram(run.Setting{Parameters: map[string]string{"rate": "2Mbit", "burst": "10KB"}})
	if err != nil {
		t.Fatal(err)
	}
	s.policer = made.(*policer)
	if err := s.policer.Add(forward.To(netip.MustParsePrefix("fd09::/16"), 2)); err != nil {
		t.Fatal(err)
	}
	s.router = s.Router("r1", s.policer)
	for _, n := range []*emu.Router{s.Router("slow", s.slow), s.Router("fast", s.fast), s.Router("sink", s.sink)} {
		if _, err := s.Link(n, s.router, [2]emu.Params{{Rate: 1e9}, {Rate: 1e9}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// seconds are bit/s that arrived of each sender in so many seconds from now on.
func (s *scene) seconds(t *testing.T, n int) (slow, fast int) {
	t.Helper()
	clear(*s.sink)
	if err := s.Run(s.Now() + time.Duration(n)*time.Second); err != nil {
		t.Fatal(err)
	}
	rate := func(src *traffic.Source) int { return (*s.sink)[sender(src.From.AsSlice()[:8])] * 8 / n }
	return rate(s.slow), rate(s.fast)
}

func near(got, want int) bool { return got > want*98/100 && got < want*102/100 }

func TestWhoSendsTooMuchIsPolicedAloneAndTheRateHoldsAtOnce(t *testing.T) {
	s := newScene(t)
	s.seconds(t, 1) // the bursts
	if slow, fast := s.seconds(t, 10); !near(slow, 1_000_000) || !near(fast, 2_000_000) {
		t.Errorf("%d and %d bit/s passed, want 1 and 2 Mbit/s", slow, fast)
	}
	h := s.policer.Handlers(s.router)
	if err := s.Do(s.router, func() {
		if err := h["rate"].Set("500kbit"); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if slow, fast := s.seconds(t, 10); !near(slow, 500_000) || !near(fast, 500_000) {
		t.Errorf("%d and %d bit/s passed, want 500 kbit/s of each", slow, fast)
	}
	if text, _ := h["senders"].Get(); text != "2" || s.policer.policed == 0 {
		t.Errorf("%s senders, %d policed", text, s.policer.policed)
	}
}

func TestBadValuesChangeNothing(t *testing.T) {
	s := newScene(t)
	p := s.policer
	for name, value := range map[string]string{"rate": "fast", "burst": "-1"} {
		if err := p.Handlers(s.router)[name].Set(value); err == nil {
			t.Errorf("%s %s is taken", name, value)
		}
		if _, err := newProgram(run.Setting{Parameters: map[string]string{name: value}}); err == nil {
			t.Errorf("a file with %s %s is taken", name, value)
		}
	}
	if _, err := newProgram(run.Setting{Parameters: map[string]string{"speed": "1Mbit"}}); err == nil {
		t.Error("an unknown parameter is taken")
	}
	if p.rate != 2_000_000 || p.burst != 10_000 {
		t.Errorf("rate %d, burst %d", p.rate, p.burst)
	}
}

func TestNothingIsAllocatedForPacketsOfKnownSenders(t *testing.T) {
	s := newScene(t)
	s.seconds(t, 1)
	if n := testing.AllocsPerRun(10, func() { s.seconds(t, 1) }); n > 0 {
		t.Errorf("%g allocations in a second", n)
	}
}
