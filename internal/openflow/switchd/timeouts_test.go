package switchd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scaffold.dev/scaffold/controller"
)

// timed is a marked flow that idles out.
func timed(mark int) controller.Flow {
	f := marked(mark)
	f.Idle = 10 * time.Second
	return f
}

// marksOf are the marks of flows, in order.
func marksOf[F any](flows []F, flow func(F) controller.Flow) (marks []int) {
	for _, f := range flows {
		m := flow(f).Match
		marks = append(marks, int(m[len(m)-1].Uint()))
	}
	slices.Sort(marks)
	return marks
}

func (s *stage) marks(at string, of owner) []int {
	return marksOf(s.at(at, of), func(f ownFlow) controller.Flow { return f.Flow })
}

// number is what the switch has in the cookie of a marked flow.
func (s *stage) number(at string, of owner, mark int) uint32 {
	s.t.Helper()
	for _, f := range s.at(at, of) {
		if f.Match.Uint(controller.EthType) == uint64(mark) {
			return f.ID
		}
	}
	s.t.Fatalf("no flow %d at %s", mark, at)
	return 0
}

// expiring is a module that hears what expires. What expires at s2 it takes long about.
func expiring(heard *[]string, long *chan struct{}) scripted {
	return scripted{"expires", func(n controller.Network) error {
		n.HandleExpired(func(at string, gone []controller.Flow) {
			if at == "s2" {
				<-*long
			}
			*heard = append(*heard, fmt.Sprint(at, " ", marksOf(gone, func(f controller.Flow) controller.Flow { return f })))
		})
		return nil
	}}
}

// A module hears what a switch has taken out by itself; it is wanted no more until the module names it again.
func TestAModuleHearsWhatExpired(t *testing.T) {
	var heard []string
	var long chan struct{}
	perform(t, func(s *stage) {
		long = make(chan struct{})
		n := s.ms.all[0]
		set := func(flows ...controller.Flow) {
			t.Helper()
			if err := n.SetFlows("s1", flows); err != nil {
				t.Fatal(err)
			}
		}
		hears := func(want ...string) {
			t.Helper()
			if synctest.Wait(); !slices.Equal(heard, want) {
				t.Errorf("it heard %q, want %q", heard, want)
			}
			heard = nil
		}
		wants := func(want ...int) {
			t.Helper()
			if got := s.marks("s1", 16); !slices.Equal(got, want) {
				t.Errorf("it wants %v, want %v", got, want)
			}
		}
		set(timed(1), timed(2), marked(3))
		first := s.number("s1", 16, 1)
		s.ms.expired(16, "s2", first)
		s.ms.expired(17, "s1", first)
		s.ms.expired(99, "s1", first)
		s.ms.expired(16, "s1", 0)
		hears()
		wants(1, 2, 3)
		calls := s.calls["s1"][16]
		s.ms.expired(16, "s1", first)
		hears("s1 [1]")
		wants(2, 3)
		if now := s.calls["s1"][16]; now != calls {
			t.Errorf("an expiry counts as a call: %d, %d", calls, now)
		}
		s.ms.expired(16, "s1", first)
		hears()

		second := s.number("s1", 16, 2)
		set(timed(1), timed(2)) // what is there is left alone
		if s.number("s1", 16, 2) != second || s.number("s1", 16, 1) == first {
			t.Error("what is there has another number, or what is put in anew has not")
		}
		if err := n.ChangeFlows("s1", []controller.Flow{timed(2)}, nil); err != nil {
			t.Fatal(err)
		}
		s.ms.expired(16, "s1", second) // the news were on their way
		hears()
		wants(1, 2)
		set(timed(1))
		third := s.number("s1", 16, 1)
		set()
		set(timed(1), timed(2))
		s.ms.expired(16, "s1", third)
		hears()
		wants(1, 2)

		if err := n.SetFlows("s2", []controller.Flow{timed(4)}); err != nil {
			t.Fatal(err)
		}
		s.ms.expired(16, "s2", s.number("s2", 16, 4))
		synctest.Wait()
		s.ms.expired(16, "s1", s.number("s1", 16, 1))
		s.ms.expired(16, "s1", s.number("s1", 16, 2))
		set(timed(1)) // before it could hear
		close(long)
		hears("s2 [4]", "s1 [2]")
		wants(1)
		n.stop("it shall")
		s.ms.expired(16, "s1", third)
		hears()
	}, expiring(&heard, &long), still)
}

// What one call changes is all there or nothing, and the rest stays.
func TestAChangeLeavesTheRestAlone(t *testing.T) {
	var heard int
	perform(t, func(s *stage) {
		n := s.ms.all[0]
		change := func(at, refused string, set, unset []controller.Flow, want ...int) {
			t.Helper()
			err := n.ChangeFlows(at, set, unset)
			if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
				t.Errorf("%v; want %q", err, refused)
			}
			if got := s.marks(at, 16); !slices.Equal(got, want) {
				t.Errorf("at %s it wants %v, want %v", at, got, want)
			}
		}
		list := func(marks ...int) (flows []controller.Flow) {
			for _, mark := range marks {
				flows = append(flows, marked(mark))
			}
			return flows
		}
		change("away", "", list(1, 2, 3), nil, 1, 2, 3)
		change("away", "", list(4), list(2, 9), 1, 3, 4)
		other := marked(1)
		other.Instructions = nil
		change("away", "", nil, []controller.Flow{other}, 3, 4)
		change("away", "a rule of this priority and match already", list(5, 5), nil, 3, 4)
		change("away", "to be put in and to be taken out", list(5), list(3, 5), 3, 4)
		bad := marked(6)
		bad.Priority = controller.MaxPriority + 1
		change("away", "at most 8191", append(list(5), bad), list(3), 3, 4)
		change("away", "use Uint or Bytes", list(5), []controller.Flow{{Match: controller.Match{{Field: controller.EthType}}}}, 3, 4)
		change("s1", "witness has a rule of this priority and match", []controller.Flow{{Priority: 1, Match: ipv6}}, nil)
		for _, idle := range []time.Duration{-time.Second, time.Millisecond, 1500 * time.Millisecond, 65536 * time.Second} {
			f := timed(5)
			f.Idle = idle
			change("away", "want whole seconds", []controller.Flow{f}, nil, 3, 4)
			if err := n.SetFlows("away", []controller.Flow{f}); err == nil {
				t.Errorf("idle %v is taken", idle)
			}
		}
		if calls := s.calls["away"][16]; calls != 3 {
			t.Errorf("%d calls count, want those that were not refused", calls)
		}
		if err := n.Subscribe(controller.Subscription{Name: "x", Switch: "away", Match: lldp}, nil); err != nil {
			t.Fatal(err)
		}
		punt := s.at("away", 16)[2]
		change("away", "", nil, []controller.Flow{punt.Flow}, 3, 4, 0x88cc) // it is not a flow of the module's
	}, still, witness(&heard))
}

// An owner has no more flows at a switch than it may, however it asks for them.
func TestChangesAreBounded(t *testing.T) {
	p := newFakePlane()
	f := newFlowTable(p)
	f.add(16, "m", false)
	f.add(17, "keeps", true)
	all := make([]ownFlow, maxOwnFlows)
	for i := range all {
		all[i] = ownFlow{Flow: marked(i)}
	}
	if err := f.set(16, "s1", all); err != nil {
		t.Fatal(err)
	}
	more := []ownFlow{{Flow: marked(maxOwnFlows)}}
	if err := f.change(16, "s1", more, nil); err == nil || !strings.Contains(err.Error(), "at most 16384") {
		t.Errorf("one too many: %v", err)
	}
	if err := f.change(16, "s1", more, []ownFlow{{Flow: marked(0xffff)}}); err == nil {
		t.Error("one too many, in the place of one that is not there, is taken")
	}
	if err := f.change(16, "s1", all[:1], nil); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if err := f.change(16, "s1", more, all[:1]); err != nil {
		t.Errorf("one in the place of another: %v", err)
	}
	if err := f.change(17, "s1", nil, nil); err == nil || !strings.Contains(err.Error(), "call SetFlows first") {
		t.Errorf("a keeper that has not spoken: %v", err)
	}
	if err := f.set(17, "s1", nil); err != nil {
		t.Fatal(err)
	}
	if err := f.change(17, "s1", []ownFlow{{Flow: controller.Flow{Priority: 2}}}, nil); err != nil {
		t.Errorf("a keeper that has: %v", err)
	}
}

// A rule for several has a lease where all of them have one, the longest.
func TestALeaseIsThatOfAllWhoShareTheRule(t *testing.T) {
	perform(t, func(s *stage) {
		subscribe := func(i int, lease time.Duration, want ...time.Duration) {
			t.Helper()
			if err := s.ms.all[i].Subscribe(controller.Subscription{Match: lldp, Lease: lease}, func(controller.Packet) {}); (err != nil) != (len(want) == 0) {
				t.Errorf("a lease of %v: %v", lease, err)
			}
			if got := s.at("s1", 16); len(want) > 0 && (len(got) != 1 || got[0].Lease != want[0]) {
				t.Errorf("the rule is %+v, want a lease of %v", got, want[0])
			}
		}
		subscribe(0, 4*time.Second, 4*time.Second)
		subscribe(1, 9*time.Second, 9*time.Second)
		subscribe(0, 0, 0)
		subscribe(0, 12*time.Second, 12*time.Second)
		for _, wrong := range []time.Duration{time.Second, -time.Second, 2500 * time.Millisecond, 65536 * time.Second} {
			subscribe(1, wrong)
		}
	}, still, scripted{"too", still.start})
}
