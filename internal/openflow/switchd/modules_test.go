package switchd

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

var (
	lldp  = controller.Match{ofp.Uint(ofp.EthType, 0x88cc)}
	ipv6  = controller.Match{ofp.Uint(ofp.EthType, 0x86dd)}
	out1  = ofp.Apply(ofp.Output{Port: 1})
	still = scripted{"still", func(controller.Network) error { return nil }}
)

// witness has one flow at s1 and a subscription, and counts its packets.
func witness(heard *int) scripted {
	return scripted{"witness", func(n controller.Network) error {
		if err := n.SetFlows("s1", []controller.Flow{{Priority: 1, Match: ipv6, Instructions: out1}}); err != nil {
			return err
		}
		return n.Subscribe(controller.Subscription{Match: ipv6}, func(controller.Packet) { *heard++ })
	}}
}

func TestAModuleHearsOfSwitchesHostsAndPackets(t *testing.T) {
	var heard []string
	perform(t, func(s *stage) {
		s.ms.changed(controller.Switch{Name: "s3", Up: true})
		s.ms.changed(controller.Switch{Name: "s1", Up: false})
		s.ms.hostChanged(controller.Host{Name: "h1", State: "up"})
		synctest.Wait()
		s.punt("s1", 16, 0, "x")
		s.punt("s3", 16, 0, "y") // it came later, and punts all the same
		synctest.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := []string{"s1 true", "s2 true", "s3 true", "s1 false", "h1 up", "x at s1", "y at s3", "tick", "tick"}
		if got := strings.Join(heard, ", "); got != strings.Join(want, ", ") {
			t.Errorf("it heard %v\nwant %v", got, want)
		}
	}, scripted{"m", func(n controller.Network) error {
		n.HandleSwitches(func(s controller.Switch) { heard = append(heard, fmt.Sprint(s.Name, " ", s.Up)) })
		n.HandleHosts(func(h controller.Host) { heard = append(heard, h.Name+" "+h.State) })
		n.Every(time.Second, func() { heard = append(heard, "tick") })
		return n.Subscribe(controller.Subscription{Match: lldp}, func(p controller.Packet) { heard = append(heard, string(p.Data)+" at "+p.Switch) })
	}})
}

func TestNewsAreMergedAndPacketsDropped(t *testing.T) {
	var last controller.Switch
	var told, packets int
	var gate chan struct{}
	perform(t, func(s *stage) {
		s.punt("s1", 16, 0, "")
		synctest.Wait() // it waits at the gate
		for i := range 1000 {
			s.ms.changed(controller.Switch{Name: "s1", Up: true, Generation: uint64(i)})
			s.punt("s1", 16, 0, "")
		}
		told = 0
		close(gate)
		synctest.Wait()
		if last.Generation != 999 || told != 1 {
			t.Errorf("told %d times, the last %+v; want the latest once", told, last)
		}
		if c := s.ms.counts()[0]; packets != packetQueue+1 || c.packets != packetQueue+1 || c.dropped != 1000-packetQueue {
			t.Errorf("%d packets, counts %+v: want %d and the rest dropped", packets, c, packetQueue)
		}
	}, scripted{"slow", func(n controller.Network) error {
		gate = make(chan struct{})
		n.HandleSwitches(func(s controller.Switch) {
			if s.Name == "s1" {
				last, told = s, told+1
			}
		})
		return n.Subscribe(controller.Subscription{Match: lldp}, func(controller.Packet) { <-gate; packets++ })
	}})
}

// Each way to misbehave costs the module that does, and nobody else.
func TestAModuleThatMisbehavesIsStopped(t *testing.T) {
	var network controller.Network
	var release chan struct{}
	bad := func(f func(n controller.Network)) scripted {
		return scripted{"bad", func(n controller.Network) error {
			network = n
			n.SetFlows("s1", []controller.Flow{{Priority: 2, Match: ipv6, Instructions: out1}})
			n.SetFlows("away", []controller.Flow{{Priority: 2, Match: ipv6, Instructions: out1}})
			n.SetLinks("s1", []controller.Link{{Router: "s1", Peer: "s2"}})
			n.Subscribe(controller.Subscription{Name: "a", Match: lldp}, func(controller.Packet) {})
			f(n)
			return nil
		}}
	}
	var none map[string]int
	for name, c := range map[string]struct {
		m    scripted
		do   func(s *stage)
		want string
	}{
		"start fails":    {scripted{"bad", func(n controller.Network) error { network = n; return errors.New("no licence") }}, nil, "it could not start: no licence"},
		"start panics":   {bad(func(controller.Network) { panic("oh no") }), nil, "panic: oh no at scaffold.dev/scaffold/internal/openflow/switchd.TestAModule"},
		"start ends all": {bad(func(controller.Network) { runtime.Goexit() }), nil, "it ended its goroutine at"},
		"a nil map":      {bad(func(controller.Network) { none["x"] = 1 }), nil, "(modules_test.go:"},
		"start hangs":    {bad(func(controller.Network) { <-release }), func(*stage) { time.Sleep(controller.Patience) }, "it hangs: a call takes more than 5s"},
		"a timer panics": {bad(func(n controller.Network) { n.Every(time.Second, func() { panic(7) }) }), func(*stage) { time.Sleep(time.Second) }, "panic: 7 at"},
		"a timer hangs":  {bad(func(n controller.Network) { n.Every(time.Second, func() { <-release }) }), func(*stage) { time.Sleep(time.Minute) }, "it hangs"},
		"a packet panics": {bad(func(n controller.Network) {
			n.Subscribe(controller.Subscription{Name: "b", Match: ipv6, First: true}, func(p controller.Packet) { _ = p.Data[99] })
		}), func(s *stage) { s.punt("s2", 16, 1, "x") }, "index out of range [99] with length 1 at"},
		"news panic":      {bad(func(n controller.Network) { n.HandleSwitches(func(controller.Switch) { panic(errors.New("odd")) }) }), nil, "panic: odd at"},
		"host news panic": {bad(func(n controller.Network) { n.HandleHosts(func(controller.Host) { panic("h") }) }), func(s *stage) { s.ms.hostChanged(controller.Host{Name: "h"}) }, "panic: h at"},
	} {
		t.Run(name, func(t *testing.T) {
			var heard int
			release = nil
			perform(t, func(s *stage) {
				if c.do != nil {
					c.do(s)
				}
				synctest.Wait()
				said := s.events()
				if i := slices.IndexFunc(said, func(e string) bool {
					return strings.HasPrefix(e, "module.stopped bad: module stopped, its rules are removed: ") && strings.Contains(e, c.want)
				}); i < 0 {
					t.Errorf("the events are %q, want that it stopped: %s", said, c.want)
				}
				for _, at := range []string{"s1", "s2", "away"} {
					if s.at(at, 16) != nil {
						t.Errorf("at %s it left %+v", at, s.at(at, 16))
					}
				}
				if len(s.fakePlane.links["s1"]) != 0 {
					t.Errorf("it left links: %v", s.fakePlane.links)
				}
				if err := refusesAll(network); err != nil {
					t.Error(err)
				}
				if len(s.at("s1", 17)) != 2 {
					t.Errorf("the witness has %+v, want its flow and its subscription", s.at("s1", 17))
				}
				s.punt("s1", 17, 0, "x")
				synctest.Wait()
				if counts := s.ms.counts(); heard != 1 || !counts[0].stopped || counts[1].stopped {
					t.Errorf("the witness heard %d packets, counts %+v", heard, counts)
				}
				if release != nil {
					close(release)
				}
			}, withRelease(c.m, &release), witness(&heard))
		})
	}
}

// withRelease makes the channel that a module hangs on, within the bubble.
func withRelease(m scripted, release *chan struct{}) scripted {
	start := m.start
	m.start = func(n controller.Network) error { *release = make(chan struct{}); return start(n) }
	return m
}

// refusesAll says what a stopped module's network still does.
func refusesAll(n controller.Network) error {
	n.HandleSwitches(func(controller.Switch) { panic("told") })
	n.HandleHosts(func(controller.Host) { panic("told") })
	n.HandleHeld(func(string, uint64) { panic("told") })
	n.HandleExpired(func(string, []controller.Flow) { panic("told") })
	n.Every(time.Millisecond, func() { panic("called") })
	n.Report("s1", "I live")
	_, tables := n.Tables(1)
	_, path := n.Path("a", "b")
	for what, err := range map[string]error{
		"Tables": tables, "Path": path, "SetFlows": n.SetFlows("s1", nil), "ChangeFlows": n.ChangeFlows("s1", nil, nil), "SetLinks": n.SetLinks("s1", nil),
		"Send":      n.Send("s1", controller.Out{Data: []byte{1}}),
		"Subscribe": n.Subscribe(controller.Subscription{Match: lldp}, func(controller.Packet) {}),
	} {
		if !errors.Is(err, controller.ErrStopped) {
			return fmt.Errorf("%s of a stopped module: %v, want %v", what, err, controller.ErrStopped)
		}
	}
	if n.Switches() != nil || n.Hosts() != nil || n.Links() != nil {
		return errors.New("a stopped module sees the network")
	}
	return nil
}

func TestTwoThatHangAreStoppedBoth(t *testing.T) {
	release := make(chan struct{}, 2)
	hang := func(n controller.Network) error { time.Sleep(20 * time.Second); release <- struct{}{}; return nil }
	perform(t, func(s *stage) {
		time.Sleep(controller.Patience + time.Second)
		synctest.Wait()
		if n := len(slices.DeleteFunc(s.events(), func(e string) bool { return !strings.Contains(e, "it hangs") })); n != 2 {
			t.Errorf("%d modules hang: %q", n, s.events())
		}
		time.Sleep(time.Minute) // they come back, and nobody listens
	}, scripted{"a", hang}, scripted{"b", hang}, still)
}

func TestWhoAsksForTheSamePacketsGetsThem(t *testing.T) {
	var heardA, heardB int
	listen := func(name string, heard *int, subs ...controller.Subscription) scripted {
		return scripted{name, func(n controller.Network) error {
			for _, s := range subs {
				if err := n.Subscribe(s, func(p controller.Packet) {
					if string(p.Data) == "die" {
						panic(name)
					}
					p.Data[0] = 0 // its own
					*heard++
				}); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	both := controller.Match{ofp.Uint(ofp.EthType, 0x86dd), ofp.Uint(ofp.IPProto, 6)}
	turned := controller.Match{both[1], both[0]}
	perform(t, func(s *stage) {
		if got := s.at("s1", 16); len(got) != 1 || got[0].Rate != 500 || got[0].Copy || !got[0].Punt || got[0].Priority <= controller.MaxPriority {
			t.Errorf("at s1 they have %+v, want one rule for both at the higher rate, that takes the packets", got)
		}
		if got := s.at("s2", 16); len(got) != 1 || got[0].Rate != 5 || !got[0].Copy {
			t.Errorf("at s2 only a has one: %+v", got)
		}
		if s.at("s1", 17) != nil || s.at("s2", 17) != nil {
			t.Errorf("b has rules of its own beside a's")
		}
		s.punt("s1", 16, 0, "hey")
		s.punt("s2", 16, 0, "hey")
		synctest.Wait()
		if heardA != 2 || heardB != 1 {
			t.Errorf("they heard %d and %d", heardA, heardB)
		}
		a, sub := s.ms.all[0], controller.Subscription{Name: "lldp", Match: lldp}
		if err := a.Subscribe(sub, nil); err != nil || len(s.at("s2", 16)) != 2 {
			t.Errorf("a further one: %v, %+v", err, s.at("s2", 16))
		}
		sub.Match = nil
		if err := a.Subscribe(sub, nil); err != nil || len(s.at("s2", 16)) != 1 {
			t.Errorf("and taken back: %v, %+v", err, s.at("s2", 16))
		}
		a.stop("it shall")
		if s.at("s1", 16) != nil || len(s.at("s1", 17)) != 1 || s.at("s2", 17) != nil {
			t.Errorf("after a stopped b has %+v at s1", s.at("s1", 17))
		}
		s.punt("s1", 17, 0, "hey")
		synctest.Wait()
		if heardA != 2 || heardB != 2 {
			t.Errorf("after a stopped they heard %d and %d", heardA, heardB)
		}
	}, listen("a", &heardA, controller.Subscription{Match: lldp}, controller.Subscription{Match: both, Rate: 5, Copy: true}), // the second takes the first one's place: the names are the same
		listen("b", &heardB, controller.Subscription{Match: turned, Rate: 500, Switch: "s1"}))
}

func TestWhatModulesMayNotWant(t *testing.T) {
	flow := func(change func(*controller.Flow)) controller.Flow {
		f := controller.Flow{Priority: 7, Match: lldp, Instructions: out1}
		change(&f)
		return f
	}
	act := func(a controller.Action) controller.Flow {
		return flow(func(f *controller.Flow) { f.Instructions = ofp.Apply(a) })
	}
	bad := map[string]controller.Flow{
		"choose another priority":      flow(func(f *controller.Flow) { f.Priority = 1; f.Match = ipv6 }),
		"at most 8191":                 flow(func(f *controller.Flow) { f.Priority = 0x2000 }),
		"want 0 or one that Tables":    flow(func(f *controller.Flow) { f.Table = 10 }),
		"first, in table 65":           flow(func(f *controller.Flow) { f.Table, f.First = 65, true }),
		"ofp.Group is not for modules": act(ofp.Group{ID: 0x5caf0001}),
		"ofp.MeterAction is not":       act(ofp.MeterAction{ID: 1}),
		"ofp.OtherAction is not":       act(ofp.OtherAction{Kind: 0xffff, Data: make([]byte, 12)}),
		"output to the port TABLE":     act(ofp.Output{Port: ofp.PortTable}),
		"use Subscribe":                act(ofp.Output{Port: ofp.PortController}),
		"on to table 10":               act(ofp.Resubmit{Table: 10}),
		"on to table 0":                flow(func(f *controller.Flow) { f.Instructions = []controller.Instruction{ofp.GotoTable{}} }),
		"ofp.MeterInstruction is not":  flow(func(f *controller.Flow) { f.Instructions = []controller.Instruction{ofp.MeterInstruction{ID: 1}} }),
		"ofp.OtherInstruction is not":  flow(func(f *controller.Flow) { f.Instructions = []controller.Instruction{ofp.OtherInstruction{Kind: 99}} }),
		"<nil> is not for modules":     act(nil),
		"instruction <nil> is not":     flow(func(f *controller.Flow) { f.Instructions = []controller.Instruction{nil} }),
		"ofp.Group is not for modules ": flow(func(f *controller.Flow) {
			f.Instructions = []controller.Instruction{ofp.WriteActions{Actions: []ofp.Action{ofp.Group{}}}}
		}),
		"use Uint or Bytes": flow(func(f *controller.Flow) { f.Match = controller.Match{{Field: ofp.EthType}} }),
	}
	var heard int
	perform(t, func(s *stage) {
		n := s.ms.all[0]
		tables, err := n.Tables(2)
		if err != nil || !slices.Equal(tables, []uint8{64, 65}) {
			t.Errorf("Tables: %v, %v; want 64 and 65", tables, err)
		}
		if more, err := s.ms.all[1].Tables(1); err != nil || more[0] != 66 {
			t.Errorf("the other's table: %v, %v; want 66", more, err)
		}
		for _, k := range []int{-1, 0, 200} {
			if got, err := n.Tables(k); err == nil {
				t.Errorf("Tables(%d) = %v", k, got)
			}
		}
		good := []controller.Flow{
			{Match: lldp, First: true, Instructions: []controller.Instruction{ofp.GotoTable{Table: 65}}},
			{Table: 64, Instructions: out1}, {Table: 65, Instructions: ofp.Apply(ofp.DecTTL{}, ofp.Output{Port: ofp.PortNormal})},
			{Match: lldp}, {Priority: 1, Match: ipv6, First: true},
		}
		if err := n.SetFlows("s1", good); err != nil {
			t.Fatal(err)
		}
		for want, f := range bad {
			if err := n.SetFlows("s1", []controller.Flow{f}); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
				t.Errorf("%+v: %v; want %q", f, err, want)
			}
		}
		for want, list := range map[string][]controller.Flow{"of this priority and match": {good[3], good[3]}, "20000 flows: at most 16384": make([]controller.Flow, 20000)} {
			if err := n.SetFlows("s1", list); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d flows: %v; want %q", len(list), err, want)
			}
		}
		if len(s.at("s1", 16)) != len(good) || len(s.at("s1", 17)) != 2 {
			t.Errorf("what was refused changed something: %+v", s.fakePlane.flows["s1"])
		}
		for i := range maxOwnSwitches + 1 {
			err = n.SetFlows(fmt.Sprint("x", i), good)
		}
		if err == nil {
			t.Error("flows for any number of switches are taken")
		}
		for _, sub := range []controller.Subscription{{Match: controller.Match{{Field: ofp.EthType}}}} {
			if err := n.Subscribe(sub, func(controller.Packet) {}); err == nil {
				t.Errorf("the subscription %+v is taken", sub)
			}
		}
		for _, out := range []controller.Out{{}, {Data: make([]byte, 70000)}, {Data: []byte{1}, Actions: []controller.Action{ofp.Group{}}}, {Data: []byte{1}, Actions: []controller.Action{ofp.Resubmit{}}}} {
			if err := n.Send("s1", out); err == nil {
				t.Errorf("a packet of %d bytes with %v is sent", len(out.Data), out.Actions)
			}
		}
		if err := n.Send("s1", controller.Out{Data: []byte{1}, Actions: []controller.Action{ofp.Output{Port: ofp.PortTable}}}); err != nil || len(s.sent) != 1 {
			t.Errorf("Send: %v", err)
		}
		for range 1000 {
			n.Report("s1", strings.Repeat("x", 9999))
		}
		if said := len(s.events()); said != 2+reportBurst {
			t.Errorf("%d events after a flood of reports, want %d", said, 2+reportBurst)
		}
	}, still, witness(&heard))
}

// One that does nothing but set flows leaves the others their turns.
func TestAModuleThatFloodsHoldsUpNobody(t *testing.T) {
	var heard int
	perform(t, func(s *stage) {
		for i := range 100 {
			s.punt("s1", 17, 0, "x")
			s.ms.changed(controller.Switch{Name: "s1", Up: true, Generation: uint64(i)})
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if heard != 100 {
			t.Errorf("the witness heard %d packets of 100", heard)
		}
		if len(s.at("s1", 17)) != 2 || len(s.at("s1", 16)) != 1 || s.at("s1", 16)[0].Priority < 1000 {
			t.Errorf("the witness has %+v, the one that floods %+v", s.at("s1", 17), s.at("s1", 16))
		}
	}, scripted{"flood", func(n controller.Network) error {
		i := uint16(0)
		n.Every(time.Millisecond, func() {
			for range 100 {
				i++
				if err := n.SetFlows("s1", []controller.Flow{{Priority: i % 8000, Match: lldp}}); err != nil {
					t.Error(err)
				}
			}
		})
		return nil
	}}, witness(&heard))
}

func TestModulesHaveNamesOfTheirOwn(t *testing.T) {
	p := newFakePlane()
	ms := newModules(p, fakeMind{p}, p, nil)
	for i, c := range []struct {
		name string
		of   owner
		ok   bool
	}{{"a", 16, true}, {"a", 17, false}, {"b", 16, false}, {"", 18, false}, {"A", 18, false}, {"-", 18, false}, {strings.Repeat("x", 33), 18, false}, {"a-1", 18, true}} {
		if err := ms.add(c.of, scripted{c.name, nil}); (err == nil) != c.ok {
			t.Errorf("%d: %q as owner %d: %v", i, c.name, c.of, err)
		}
	}
}

// A rule may have all others decide about a packet, if that does not come to it again.
func TestARuleGivesWayOnlyOnce(t *testing.T) {
	reg := func(n uint8, value, bits uint64) controller.OXM {
		return controller.UintMasked(controller.Reg(n), value, bits)
	}
	const guard = controller.GuardRegister
	perform(t, func(s *stage) {
		n := s.ms.all[0]
		for _, c := range []struct {
			what  string
			match controller.Match
			do    []controller.Action
			may   bool
		}{
			{"guarded", controller.Match{reg(guard, 0, 1)}, []controller.Action{controller.SetField{OXM: reg(guard, 1, 1)}, controller.Resubmit{}}, true},
			{"all bits", controller.Match{controller.Uint(controller.Reg(guard), 0)}, []controller.Action{controller.SetField{OXM: controller.Uint(controller.Reg(guard), 0xffffffff)}, controller.Resubmit{}}, true},
			{"what another set is taken back", controller.Match{reg(guard, 0, 1)}, []controller.Action{controller.SetField{OXM: controller.Uint(controller.Reg(guard), 1)}, controller.Resubmit{}}, false},
			{"taken back elsewhere", nil, []controller.Action{controller.SetField{OXM: reg(guard, 0, 2)}}, false},
			{"copied over", nil, []controller.Action{controller.CopyField{Bits: 1, Src: controller.Reg(5), Dst: controller.Reg(guard)}}, false},
			{"by its larger name", nil, []controller.Action{controller.SetField{OXM: controller.UintMasked(ofp.PacketReg(guard/2), 0, 1)}}, false},
			{"copied from", nil, []controller.Action{controller.CopyField{Bits: 1, Src: controller.Reg(guard), Dst: controller.Reg(5)}}, true},
			{"no guard", nil, []controller.Action{controller.SetField{OXM: reg(guard, 1, 1)}, controller.Resubmit{}}, false},
			{"another bit", controller.Match{reg(guard, 0, 1)}, []controller.Action{controller.SetField{OXM: reg(guard, 2, 2)}, controller.Resubmit{}}, false},
			{"set to 0", controller.Match{reg(guard, 0, 1)}, []controller.Action{controller.SetField{OXM: reg(guard, 0, 1)}, controller.Resubmit{}}, false},
			{"taken back", controller.Match{reg(guard, 0, 1)}, []controller.Action{controller.SetField{OXM: reg(guard, 1, 1)}, controller.SetField{OXM: reg(guard, 0, 1)}, controller.Resubmit{}}, false},
			{"a bit that is 1", controller.Match{reg(guard, 1, 1)}, []controller.Action{controller.SetField{OXM: reg(guard, 1, 1)}, controller.Resubmit{}}, false},
			{"too late", controller.Match{reg(guard, 0, 1)}, []controller.Action{controller.Resubmit{}, controller.SetField{OXM: reg(guard, 1, 1)}}, false},
			{"another register", controller.Match{reg(5, 0, 1)}, []controller.Action{controller.SetField{OXM: reg(5, 1, 1)}, controller.Resubmit{}}, false},
		} {
			f := controller.Flow{Priority: 7, First: true, Match: c.match, Instructions: controller.Apply(c.do...)}
			if err := n.SetFlows("s1", []controller.Flow{f}); (err == nil) != c.may {
				t.Errorf("%s: %v", c.what, err)
			}
		}
	}, scripted{"gives-way", func(controller.Network) error { return nil }})
}

// What a keeper has not spoken of goes all the same when it is stopped, also where a switch comes only then.
func TestAKeeperThatIsStoppedKeepsNothing(t *testing.T) {
	p := newFakePlane("s1")
	f := newFlowTable(p)
	f.add(16, "keeps", true)
	f.add(17, "does-not", false)
	spoken := func(want string) {
		t.Helper()
		got := ""
		for _, at := range []string{"s1", "s2", "s3"} {
			got += fmt.Sprint(at, " ", p.calls[at][16], p.calls[at][17], " ")
		}
		if got != want {
			t.Errorf("the switches hear of calls %q, want %q", got, want)
		}
	}
	f.switchCame("s1")
	f.switchCame("s2")
	if err := f.set(16, "s2", []ownFlow{{Flow: controller.Flow{Match: lldp, Instructions: out1}}}); err != nil {
		t.Fatal(err)
	}
	spoken("s1 0 0 s2 1 0 s3 0 0 ")
	f.forget(16)
	f.forget(17)
	spoken("s1 1 0 s2 2 0 s3 0 0 ")
	f.switchCame("s3")
	spoken("s1 1 0 s2 2 0 s3 1 0 ")
}

// A module hears which of its calls a switch has come to hold; of several the last.
func TestAModuleHearsWhatASwitchHolds(t *testing.T) {
	var heard []string
	perform(t, func(s *stage) {
		s.ms.held(16, "s1", 1)
		s.ms.held(17, "s1", 9)
		synctest.Wait()
		if want := []string{"s1 1"}; !slices.Equal(heard, want) {
			t.Errorf("heard %v, want %v", heard, want)
		}
	}, scripted{"hears", func(n controller.Network) error {
		n.HandleHeld(func(at string, calls uint64) { heard = append(heard, fmt.Sprint(at, " ", calls)) })
		return nil
	}})
}
