package emurouter

import (
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// TestFirstPacketsPassASilentHostBy, whoever chose it: its port has a carrier, and nobody answers there.
func TestFirstPacketsPassASilentHostBy(t *testing.T) {
	for _, service := range []bool{true, false} {
		s := newScene(t, service)
		silent, other := space.Locator(0x101), space.Locator(0x202)
		s.answers.Apply(plan.Rules{Resolutions: []plan.Resolution{{Triple: sid.Triple{Service: web, Proto: sid.TCP, Port: 80},
			Targets: []resolve.Target{{Locator: silent, Weight: 100}, {Locator: other, Weight: 1}}}}})
		chosen := syn(silent.Addr(uint64(web.Suffix)), 80)
		s.send(t, s.up, chosen.Bytes())
		only(t, s.hosts.got)

		s.probes.SetLimits(liveness.Limits{Suspect: 3, Gone: 6})
		s.probes.Add(silent, "to-h", 7)
		if err := s.Run(s.Now() + 100*probesOff); err != nil {
			t.Fatal(err)
		}
		if got := hostEvents(s.mail.take()); len(got) != 2 || got[1].State != liveness.Gone {
			t.Fatalf("nobody answers: %v, want it suspect, then gone", got)
		}
		want := other.Addr(uint64(web.Suffix))
		if !service { // to any service router, as if the host had returned it
			want = space.Locator(0).Addr(uint64(web.Suffix))
			if err := s.ways.Set(space.AS, firstPort+1); err != nil {
				t.Fatal(err)
			}
		}
		s.send(t, s.up, chosen.Bytes())
		got := only(t, s.net.got)
		if _, dst := bpftest.Addrs(got); dst != want || sid.LabelOf(got) != sid.NewLabel(silent, 1) || !bpftest.ChecksumOK(got) {
			t.Errorf("it goes to %v with the label %#x, want %v and that %v is told of: %x", dst, sid.LabelOf(got), want, silent, got)
		}
		for name, p := range map[string]bpftest.Packet{"a flow's": syn(silent.Addr(1<<63), 80), "the host's own": syn(silent.Host(), 80)} {
			s.send(t, s.up, p.Bytes())
			if _, dst := bpftest.Addrs(only(t, s.hosts.got)); dst != p.Dst {
				t.Errorf("%s packet goes to %v", name, dst)
			}
		}
		s.answers.SetSilent(silent, false)
		s.send(t, s.up, chosen.Bytes())
		only(t, s.hosts.got)
		if n := s.counts()["resolved_past_silent"]; n != 1 {
			t.Errorf("%d packets went past a silent host, want 1", n)
		}
	}
}
