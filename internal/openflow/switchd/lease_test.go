package switchd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// lapse has a marked flow with a lease end, as a switch does whose time is up.
func (s *ruled) lapse(mark int) {
	for _, f := range s.all() {
		if f.HardTimeout > 0 && f.Match.Uint(ofp.EthType) == uint64(mark) {
			s.take(ofp.FlowMod{Command: ofp.FlowDeleteStrict, Table: f.Table, Priority: f.Priority, Match: f.Match})
		}
	}
}

// A lease is renewed while one change follows the other without a pause, and what ran out comes back by that; of a subscription
// that was taken back it is not.
func TestALeaseIsRenewedAmongChanges(t *testing.T) {
	s, nets := new(ruled), make(chan controller.Network, 1)
	subscribe := func(n controller.Network, mark int, match controller.Match) error {
		return n.Subscribe(controller.Subscription{Name: fmt.Sprint(mark), Match: match, Lease: shortestLease}, func(controller.Packet) {})
	}
	d := drive(t, Config{Modules: []controller.Module{scripted{"m", func(n controller.Network) error {
		nets <- n
		turn := 0
		n.Every(time.Millisecond, func() {
			turn++
			if err := n.ChangeFlows("liar-9", []controller.Flow{marked(1000 + turn%100)}, []controller.Flow{marked(1000 + (turn+50)%100)}); err != nil {
				t.Error(err)
			}
		})
		for mark := 1; mark <= 2; mark++ {
			if err := subscribe(n, mark, marked(mark).Match); err != nil {
				return err
			}
		}
		return nil
	}}}})
	s.connect(d, 9)
	d.accept(here).snapshot(1, plan.Rules{})
	d.note("switch.reconciled", "liar-9")
	has := func(mark int, want bool) {
		t.Helper()
		nstest.Wait(t, "the flows", func() error {
			if got := s.has(16); slices.Contains(got, mark) != want {
				return fmt.Errorf("the switch has %v, want %d among them: %v", got, mark, want)
			}
			return nil
		})
	}
	for range 2 {
		s.lapse(1)
		has(1, true)
	}
	if err := subscribe(nstest.Receive(t, "the module", nets), 1, nil); err != nil {
		t.Fatal(err)
	}
	has(1, false)
	for range 2 { // in the time in which the other is renewed
		has(2, true)
		s.lapse(2)
		has(2, true)
	}
	has(1, false)
}
