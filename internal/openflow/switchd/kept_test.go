package switchd

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A ruled is a switch of which only flows are real: it takes those that it is told, and says what it has.
type ruled struct {
	mu    sync.Mutex
	flows map[string]ofp.Flow // by table, priority and match
}

// has are the marks of flows of the owner, in order; see marked.
func (s *ruled) has(of owner) (marks []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flows {
		if by, _, _ := oftables.Punted(f.Cookie); owner(by) == of {
			marks = append(marks, int(f.Match[len(f.Match)-1].Uint()))
		}
	}
	slices.Sort(marks)
	return marks
}

// left is a flow of an owner that is there before.
func (s *ruled) left(of owner, mark int) {
	cookie, _ := oftables.Cookies()
	f := marked(mark)
	s.take(ofp.FlowMod{Cookie: cookie | uint64(of)<<32, Priority: 0x100, Match: f.Match, Instructions: f.Instructions})
}

// marked is a flow whose match says which it is.
func marked(mark int) controller.Flow {
	return controller.Flow{Priority: 1, First: true, Match: controller.Match{ofp.Uint(ofp.EthType, uint64(mark))}, Instructions: out1}
}

func (s *ruled) take(m ofp.FlowMod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flows == nil {
		s.flows = map[string]ofp.Flow{}
	}
	key := fmt.Sprint(m.Table, m.Priority, canonical(m.Match))
	if m.Command == ofp.FlowAdd {
		s.flows[key] = ofp.Flow{Cookie: m.Cookie, Table: m.Table, Priority: m.Priority, Match: m.Match, Instructions: m.Instructions,
			IdleTimeout: m.IdleTimeout, HardTimeout: m.HardTimeout, Flags: m.Flags}
		return
	}
	delete(s.flows, key)
}

func (s *ruled) all() (all ofp.Flows) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flows {
		all = append(all, f)
	}
	return all
}

// connect has it come to the daemon, until the connection is closed.
func (s *ruled) connect(d *driven, id uint64) *impostor {
	i := d.impostor(id)
	go i.behave(func(m ofp.Message) bool { // ends with the connection
		switch b := m.Body.(type) {
		case ofp.FlowMod:
			s.take(b)
		case ofp.BundleAdd:
			if f, is := b.Message.Body.(ofp.FlowMod); is {
				s.take(f)
			}
		case ofp.MultipartRequest:
			if _, is := b.Ask.(ofp.AskFlows); is {
				for part := range slices.Chunk(s.all(), 50) {
					i.say(ofp.V15, m.XID, ofp.MultipartReply{More: true, Part: part})
				}
			}
		}
		return false
	})
	return i
}

// keeping is a module whose rules outlive it.
type keeping struct{ scripted }

func (keeping) KeepsRules() {}

// What an earlier controller left of a module that keeps its rules stays until the module has spoken, whatever is read meanwhile,
// and goes when it is stopped; of another module it goes at once. A module hears that a switch has what it wants when it is there.
func TestRulesOfAKeeperOutliveAController(t *testing.T) {
	defer func(d time.Duration) { checkEvery = d }(checkEvery)
	checkEvery = 50 * time.Millisecond
	const punted = 0x1234
	s, nets, said := new(ruled), make(chan controller.Network, 1), make(chan string, 100)
	var now atomic.Bool
	d := drive(t, Config{Modules: []controller.Module{still, keeping{scripted{"keeps", func(n controller.Network) error {
		nets <- n
		n.HandleHeld(func(at string, calls uint64) { said <- fmt.Sprint(at, " ", calls, " ", s.has(17)) })
		n.Every(10*time.Millisecond, func() {
			if now.Load() {
				panic("as it was told")
			}
		})
		return n.Subscribe(controller.Subscription{Match: marked(punted).Match}, func(controller.Packet) {})
	}}}}})
	for mark := range 3 {
		s.left(16, 11+mark)
		s.left(17, 1+mark)
	}
	first := s.connect(d, 9)
	d.accept(here).snapshot(1, plan.Rules{})
	d.note("switch.reconciled", "liar-9")
	holds := func(of owner, want ...int) {
		t.Helper()
		nstest.Wait(t, "the flows", func() error {
			if got := s.has(of); !slices.Equal(got, want) {
				return fmt.Errorf("the switch has %v of owner %d, want %v", got, of, want)
			}
			return nil
		})
	}
	hears := func(want string) {
		t.Helper()
		if got := nstest.Receive(t, "the module: it does not hear that the switch has its rules", said); got != want {
			t.Errorf("the module hears %q, want %q", got, want)
		}
	}
	holds(16)
	holds(17, 1, 2, 3, punted)
	time.Sleep(5 * checkEvery)
	holds(17, 1, 2, 3, punted)
	n := nstest.Receive(t, "the module", nets)
	if err := n.SetFlows("liar-9", []controller.Flow{marked(2), marked(4)}); err != nil {
		t.Fatal(err)
	}
	hears(fmt.Sprint("liar-9 1 ", []int{2, 4, punted}))
	time.Sleep(5 * checkEvery)
	for len(d.notes) > 0 {
		if e := <-d.notes; e.Kind == "switch.repair" {
			t.Errorf("what is kept is taken for wrong: %s", e.Text)
		}
	}
	first.nc.Close() // it comes again, and has them
	d.note("switch.gone", "liar-9")
	s.left(17, 5)
	s.connect(d, 9)
	d.accept(here).snapshot(2, plan.Rules{})
	hears(fmt.Sprint("liar-9 1 ", []int{2, 4, punted}))
	if err := n.SetFlows("liar-9", []controller.Flow{marked(2), marked(4)}); err != nil {
		t.Fatal(err)
	}
	hears(fmt.Sprint("liar-9 2 ", []int{2, 4, punted})) // also where nothing was to do
	s.left(17, 6)
	now.Store(true)
	d.note("module.stopped", "panic: as it was told at")
	holds(17)
	if len(said) > 0 {
		t.Errorf("the module hears more: %q", <-said)
	}
}

// Of a switch that a keeper has not spoken of nothing is left when it is stopped.
func TestAKeeperThatIsStoppedLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	s := new(ruled)
	s.left(16, 1)
	d := drive(t, Config{Modules: []controller.Module{keeping{scripted{"keeps", func(controller.Network) error { return errors.New("no licence") }}}}})
	d.note("module.stopped", "no licence")
	s.connect(d, 9)
	d.accept(here).snapshot(1, plan.Rules{})
	nstest.Wait(t, "the flows", func() error {
		if got := s.has(16); len(got) > 0 {
			return fmt.Errorf("the switch has %v", got)
		}
		return nil
	})
}
