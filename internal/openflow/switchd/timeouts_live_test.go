package switchd

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// In a real switch a rule that idles out is gone, its module hears of it, and neither a check nor a reconnection puts it back.
// A leased subscription is there as long as the controller is, longer than its lease; without the controller it goes, and what
// it took goes on.
func TestRulesEndByThemselvesInTheSwitch(t *testing.T) {
	const shown = 0x9999
	ns, in, out := nstest.New(t, "switch"), nstest.New(t, "in"), nstest.New(t, "out")
	ovs := ns.NewOVS(t)
	gone, packets := make(chan string, 10), make(chan controller.Packet, 10)
	short, stays := marked(0x1111), marked(0x2222)
	short.Idle, stays.Idle = 3*time.Second, time.Hour
	var once sync.Once
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}, Modules: []controller.Module{scripted{"m", func(n controller.Network) error {
		n.HandleExpired(func(at string, f []controller.Flow) {
			gone <- fmt.Sprint(at, " ", marksOf(f, func(f controller.Flow) controller.Flow { return f }))
		})
		n.HandleSwitches(func(s controller.Switch) {
			for _, p := range s.Ports {
				if p.Name != "r1-out" {
					continue
				}
				on := marked(shown)
				on.Instructions = controller.Apply(controller.Output{Port: p.Number})
				once.Do(func() {
					if err := errors.Join(n.SetFlows(s.Name, []controller.Flow{stays, on}), n.ChangeFlows(s.Name, []controller.Flow{short}, nil)); err != nil {
						t.Error(err)
					}
				})
			}
		})
		return n.Subscribe(controller.Subscription{Match: controller.Match{ofp.Uint(ofp.EthType, shown)}, First: true, Lease: 2 * time.Second},
			func(p controller.Packet) { packets <- p })
	}}}})
	s := connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	for port, peer := range map[string]*nstest.NS{"r1-in": in, "r1-out": out} {
		nstest.Veth(t, ns, port, peer, "up")
		ns.Up(t, port)
		ovs.Vsctl(t, "add-port", "r1", port)
	}
	send, arrive := in.Frames(t, "up"), out.Frames(t, "up")
	frame := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, shown >> 8, shown & 0xff}, make([]byte, 46)...)
	d.accept(here).snapshot(1, hosts("r1"))
	d.note("switch.reconciled", "r1")
	has := func(with string, want int) {
		t.Helper()
		nstest.Wait(t, "ovs-ofctl dump-flows", func() error {
			if lines := s.flows(with); len(lines) != want {
				return fmt.Errorf("%d flows with %s, want %d: %v", len(lines), with, want, lines)
			}
			return nil
		})
	}
	has("dl_type=0x1111", 1)
	has("hard_timeout=2", 1)
	if got := nstest.Receive(t, "the module: it does not hear what expired", gone); got != "r1 [4369]" {
		t.Errorf("the module hears that %s expired, want r1 [%d]", got, 0x1111)
	}
	has("hard_timeout=2", 1) // for longer than it lasts unless it is renewed
	send.Send(t, frame)
	if p := nstest.Receive(t, "the module: no packet", packets); p.Port != "r1-in" || !bytes.Equal(p.Data, frame) {
		t.Errorf("the packet %+v", p)
	}

	s.control("none:")
	d.note("switch.gone", "r1")
	s.control("unix:" + ovs.Dir + "/of")
	d.accept(here).snapshot(2, hosts("r1"))
	d.note("switch.reconciled", "r1")
	has("dl_type=0x1111", 0)
	has("dl_type=0x2222", 1)
	for len(d.notes) > 0 {
		if e := <-d.notes; e.Kind == "switch.repair" {
			t.Errorf("what ended by itself is taken for wrong: %s", e.Text)
		}
	}

	arrive.Drain(t)
	d.stop()
	has("hard_timeout=2", 0)
	nstest.Wait(t, "ovs-appctl dpctl/dump-flows", func() error {
		// The switch goes on by what it has looked up while the rule was there, until its revalidators have had a processor.
		send.Send(t, frame)
		if !slices.ContainsFunc(arrive.Drain(t), func(b []byte) bool { return bytes.Equal(b, frame) }) {
			return errors.New("the packet that nobody takes any more does not arrive")
		}
		return nil
	})
}
