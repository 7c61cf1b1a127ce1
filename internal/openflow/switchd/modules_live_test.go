package switchd

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A module's rules are in a real switch; when it panics they are gone from there, and everybody else's are not.
func TestWhatAModuleLeftIsTakenOutOfTheSwitch(t *testing.T) {
	safety.Test(t, safety.Trace)
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	var now atomic.Bool
	wants := func(name string, port uint64, more func(controller.Network)) scripted {
		return scripted{name, func(n controller.Network) error {
			tables, err := n.Tables(1)
			if err != nil {
				return err
			}
			n.HandleSwitches(func(s controller.Switch) {
				match := controller.Match{ofp.Uint(ofp.EthType, 0x86dd), ofp.Uint(ofp.IPProto, 6), ofp.Uint(ofp.TCPDst, port)}
				if err := n.SetFlows(s.Name, []controller.Flow{
					{Priority: 7, First: true, Match: match, Instructions: []controller.Instruction{controller.GotoTable{Table: tables[0]}}},
					{Table: tables[0], Match: match, Instructions: controller.Apply(controller.DecTTL{}, controller.Output{Port: controller.PortNormal})},
				}); err != nil {
					t.Error(err)
				}
			})
			more(n)
			return n.Subscribe(controller.Subscription{Match: controller.Match{ofp.Uint(ofp.EthType, port)}}, func(controller.Packet) {})
		}}
	}
	bad := wants("bad", 4001, func(n controller.Network) {
		n.Every(10*time.Millisecond, func() {
			if now.Load() {
				panic("as it was told")
			}
		})
	})
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}, Modules: []controller.Module{bad, wants("good", 4002, func(controller.Network) {})}})
	s := connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	d.accept(here).snapshot(1, hosts("r1"))
	d.note("switch.reconciled", "r1")
	has := func(port, want int) {
		t.Helper()
		nstest.Wait(t, "ovs-ofctl dump-flows", func() error {
			if n := len(s.flows(fmt.Sprint("tp_dst=", port))) + len(s.flows(fmt.Sprintf("dl_type=%#04x", port))); n != want {
				return fmt.Errorf("%d flows of port %d, want %d", n, port, want)
			}
			return nil
		})
	}
	has(4001, 3) // two flows and a subscription
	has(4002, 3)
	way := len(s.flows("ipv6_dst=fd5d:0:1:101::/64"))
	now.Store(true)
	d.note("module.stopped", "panic: as it was told at")
	has(4001, 0)
	has(4002, 3)
	if n := len(s.flows("ipv6_dst=fd5d:0:1:101::/64")); n != way || n == 0 {
		t.Errorf("Scaffold's own flows to a host were %d and are %d", way, n)
	}
}
