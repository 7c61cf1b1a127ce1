package switchd

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// A bypass is a module's way to a switch's tables, without modules and connections: what is wanted, a member whose loop is
// whoever calls settle, and a switch that has what it was told.
type bypass struct {
	*flowTable
	m  *member
	is ruled
}

func newBypass() *bypass {
	d := &daemon{}
	m := &member{d: d, spec: Switch{Name: "s1", Datapath: 1}, inbox: make(chan func(), 256), writer: writer{synced: true},
		tables: oftables.New(space, oftables.Options{Version: ofp.V15, Extensions: true})}
	d.registry.enter(m)
	b := &bypass{flowTable: newFlowTable(d), m: m}
	b.add(16, "m", false)
	b.tables[64] = 16
	return b
}

// settle has the switch told of all that is wanted.
func (b *bypass) settle() (told int) {
	for len(b.m.inbox) > 0 {
		(<-b.m.inbox)()
	}
	return b.tell()
}

// tell has the switch told what the tables know.
func (b *bypass) tell() int {
	bodies := b.m.tables.Drain()
	for _, body := range bodies {
		if f, is := body.(ofp.FlowMod); is {
			b.is.take(f)
		}
	}
	return len(bodies)
}

// text is what the switch has; which number a flow has does not matter.
func (b *bypass) text() string {
	var lines []string
	for _, f := range b.is.all() {
		f.Cookie >>= 32
		lines = append(lines, fmt.Sprintf("%+v", f))
	}
	slices.Sort(lines)
	return fmt.Sprint(lines)
}

func drawFlows(t *rapid.T, most int) (flows []ownFlow) {
	seen := map[ruleKey]bool{}
	for range rapid.IntRange(0, most).Draw(t, "flows") {
		f := marked(rapid.IntRange(1, 6).Draw(t, "mark"))
		f.Idle = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "idle")
		f.Instructions = ofp.Apply(ofp.Output{Port: ofp.Port(rapid.IntRange(1, 2).Draw(t, "port"))})
		if rapid.Bool().Draw(t, "table") {
			f.Table, f.First = 64, false
		}
		if key := keyOf(f); !seen[key] {
			seen[key] = true
			flows = append(flows, ownFlow{Flow: f})
		}
	}
	return flows
}

// Whatever was said by SetFlows and ChangeFlows, and has expired meanwhile, the switch has what it would have by one SetFlows
// of all that is wanted in the end; also where it takes several changes at once.
func TestChangesAreWhatTheWholeWouldBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, wanted := newBypass(), map[ruleKey]ownFlow{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				flows := drawFlows(t, 5)
				clear(wanted)
				for _, f := range flows {
					wanted[keyOf(f.Flow)] = f
				}
				if err := b.set(16, "s1", flows); err != nil {
					t.Fatal(err)
				}
			case 1, 2, 3:
				var set, unset []ownFlow
				for _, f := range drawFlows(t, 3) {
					if rapid.Bool().Draw(t, "take out") {
						unset = append(unset, f)
						delete(wanted, keyOf(f.Flow))
					} else {
						set = append(set, f)
						wanted[keyOf(f.Flow)] = f
					}
				}
				if err := b.change(16, "s1", set, unset); err != nil {
					t.Fatal(err)
				}
			case 4:
				b.expire(t, wanted)
			default:
				b.settle()
			}
		}
		b.settle()
		if more := b.settle(); more > 0 {
			t.Fatalf("nothing has changed, and there are %d things to tell", more)
		}
		whole := newBypass()
		if err := whole.set(16, "s1", slices.Collect(maps.Values(wanted))); err != nil {
			t.Fatal(err)
		}
		whole.settle()
		if got, want := b.text(), whole.text(); got != want {
			t.Fatalf("the switch has\n%s\nand by one call it would have\n%s", got, want)
		}
	})
}

// expire has one flow of the switch end, if it may. The owner has lost it unless it has put it in anew and the switch does not
// know yet.
func (b *bypass) expire(t *rapid.T, wanted map[ruleKey]ownFlow) {
	all := map[string]ofp.Flow{}
	for _, f := range b.is.all() {
		if f.Flags&ofp.FlagSendRemoved != 0 {
			all[fmt.Sprintf("%+v", f)] = f
		}
	}
	if len(all) == 0 {
		return
	}
	f := all[rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "expires")]
	b.is.take(ofp.FlowMod{Command: ofp.FlowDeleteStrict, Table: f.Table, Priority: f.Priority, Match: f.Match})
	b.m.d.audience = expiries(func(of owner, at string, id uint32) {
		if gone, ok := b.expired(of, at, id); ok {
			delete(wanted, keyOf(gone))
		}
	})
	wants := len(wanted)
	b.m.removed(ofp.FlowRemoved{Reason: ofp.RemovedIdle, Cookie: f.Cookie, Table: f.Table, Priority: f.Priority, Match: f.Match})
	b.tell() // at once, as the loop does
	for _, back := range b.is.all() {
		if len(wanted) < wants && back.Cookie == f.Cookie && back.Table == f.Table && slices.Equal(back.Match, f.Match) {
			t.Fatalf("what has expired is put back: %+v", back)
		}
	}
}

// expiries are an audience that hears of nothing else.
type expiries func(of owner, at string, id uint32)

func (f expiries) expired(of owner, at string, id uint32) { f(of, at, id) }
func (expiries) changed(controller.Switch)                {}
func (expiries) held(owner, string, uint64)               {}
func (expiries) punted(owner, uint32, controller.Packet)  {}

// What changes while a switch does not look is noted one by one up to a bound, and then as all of it.
func TestWhatNobodyTakesIsBounded(t *testing.T) {
	b := newBypass()
	for i := range 2 * mostChanges {
		if err := b.change(16, "away", []ownFlow{{Flow: marked(i)}}, []ownFlow{{Flow: marked(i - 1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if x := b.m.d.wishes.flows["away"][16]; len(x.changed) > mostChanges || !x.whole {
		t.Errorf("%d changes wait", len(x.changed))
	}
	if n := b.m.d.wishes.news(16, "away"); !n.whole || len(n.set) != 1 || n.calls != 2*mostChanges {
		t.Errorf("the news are %+v", n)
	}
	if n := b.m.d.wishes.news(16, "away"); !n.none() {
		t.Errorf("the news are told twice: %+v", n)
	}
}

// BenchmarkOneRuleOfMany is one rule that changes while a module has 4096 at a switch, from the call to the messages for the
// switch: said by itself and as a part of all, as a module that knows no other way has to.
func BenchmarkOneRuleOfMany(b *testing.B) {
	const many = 4096
	all := make([]ownFlow, many)
	for i := range all {
		all[i] = ownFlow{Flow: controller.Flow{Priority: 7, First: true, Idle: time.Minute, Instructions: out1, Match: controller.Match{
			controller.Uint(controller.EthType, 0x800), controller.Uint(controller.IPProto, 6),
			controller.Uint(controller.IPv4Src, 0x0a000001), controller.Uint(controller.IPv4Dst, 0x0a000002),
			controller.Uint(controller.TCPSrc, uint64(i)), controller.Uint(controller.TCPDst, 80)}}}
	}
	out2 := ofp.Apply(ofp.Output{Port: 2})
	for _, c := range []struct {
		name string
		say  func(s *bypass, all []ownFlow, i int) error
	}{
		{"ChangeFlows", func(s *bypass, all []ownFlow, i int) error { return s.change(16, "s1", all[i:i+1], nil) }},
		{"SetFlows", func(s *bypass, all []ownFlow, _ int) error { return s.set(16, "s1", all) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, all := newBypass(), slices.Clone(all)
			if err := s.set(16, "s1", all); err != nil {
				b.Fatal(err)
			}
			for i := range b.N + 1 {
				if i == 1 {
					b.ResetTimer()
				}
				at := i % many
				all[at].Instructions = out2
				if i/many%2 == 1 {
					all[at].Instructions = out1
				}
				if err := c.say(s, all, at); err != nil {
					b.Fatal(err)
				}
				for len(s.m.inbox) > 0 {
					(<-s.m.inbox)()
				}
				if told := len(s.m.tables.Drain()); i > 0 && told != 1 {
					b.Fatalf("the switch is told %d things", told)
				}
			}
		})
	}
}
