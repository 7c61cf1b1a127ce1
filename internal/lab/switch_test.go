package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/switches"
	"scaffold.dev/scaffold/internal/lab/wires"
	"scaffold.dev/scaffold/internal/openflow/ovs"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// controllerOf listens where the lab's switches look for their controller.
func controllerOf(t *testing.T, l *Lab) net.Listener {
	t.Helper()
	var listener net.Listener
	err := l.In("ctl", func() (err error) {
		listener, err = net.Listen("tcp", strings.TrimPrefix(l.plan.OpenFlowTargets()[0], "tcp:"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// awaitHello waits for a switch that speaks OpenFlow 1.5 first.
func awaitHello(t *testing.T, listener net.Listener) net.Conn {
	t.Helper()
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(nstest.Deadline))
	hello := make([]byte, 8)
	if _, err := io.ReadFull(c, hello); err != nil || hello[0] != 6 || hello[1] != 0 {
		t.Fatalf("a switch says % x, %v; want a HELLO of OpenFlow 1.5", hello, err)
	}
	return c
}

func tool(t *testing.T, l *Lab, node string, argv ...string) string {
	t.Helper()
	out, err := l.Output(t.Context(), node, argv...)
	if err != nil {
		t.Fatalf("%s: %v: %v\n%s", node, argv, err, out)
	}
	return string(out)
}

// awaitPorts waits until the daemon has all ports of a switch.
func awaitPorts(t *testing.T, l *Lab, node string, ports ...string) {
	t.Helper()
	nstest.Wait(t, "ovs-vsctl show of "+node, func() error {
		for i, p := range ports {
			out, err := l.Output(t.Context(), node, "ovs-vsctl", "--timeout=5", "get", "Interface", p, "ofport")
			if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(i+1) {
				return fmt.Errorf("%s: ofport of %s: %s, %v", node, p, out, err)
			}
		}
		return nil
	})
}

// roomy checks that the switch's ports have room for bursts.
func roomy(t *testing.T, l *Lab) {
	t.Helper()
	for _, pid := range l.procs.Group("sw", file.Vswitchd).PIDs() {
		if ports, small, err := ovs.Widen(pid, ovs.Buffer); ports != 1 || small != 0 || err != nil {
			t.Errorf("%d ports are found, %d of them have small buffers, %v", ports, small, err)
		}
	}
}

func TestASwitchIsThereAsTheFileSays(t *testing.T) {
	l := upLab(t, "switch")
	awaitHello(t, controllerOf(t, l))
	awaitPorts(t, l, "sw", "to-r1")
	bridge := tool(t, l, "sw", "ovs-vsctl", "--timeout=5", "list", "Bridge", switches.Bridge)
	for _, want := range []string{`dp-desc=sw`, `datapath_id         : "0000025caf000005"`, `fail_mode           : secure`, `datapath_type       : netdev`} {
		if !strings.Contains(bridge, want) {
			t.Errorf("the bridge has no %q:\n%s", want, bridge)
		}
	}
	if out := tool(t, l, "sw", "ovs-vsctl", "--timeout=5", "get", "Open_vSwitch", ".", "other_config:userspace-tso-enable"); out != "\"true\"\n" {
		t.Errorf("userspace-tso-enable is %q", out)
	}
	if out := tool(t, l, "sw", "ip", "-6", "addr", "show", "dev", "to-r1"); out != "" {
		t.Errorf("the kernel listens on a switch's port:\n%s", out)
	}
	s, err := l.Status()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes {
		if n.Name == "sw" && (n.Kind != "switch" || n.LinkLocal != "fe80::5c:afff:fe00:5" || len(n.Processes) != 2 || n.Processes[0].State != "running") {
			t.Errorf("status of the switch: %+v", n)
		}
	}
}

func TestASwitchIsKilledAndStartedLikeARouter(t *testing.T) {
	l := upLab(t, "swkill")
	ctl := controllerOf(t, l)
	c := awaitHello(t, ctl)
	const others = "ptcp:6700" // a controller of somebody else's, beside ours
	tool(t, l, "sw", "ovs-vsctl", "--timeout=5", "--no-wait", "set-controller", switches.Bridge, l.plan.OpenFlowTargets()[0], others)
	defer func() {
		if all := tool(t, l, "sw", "ovs-vsctl", "--timeout=5", "get-controller", switches.Bridge); !strings.Contains(all, others) || strings.Count(all, "\n") != 2 {
			t.Errorf("a restart left these controllers of ours and another:\n%s", all)
		}
	}()
	for _, verbs := range [][]string{{"kill sw/vswitchd", "start sw"}, {"restart sw"}, {"kill sw/routerd", "start sw/routerd"}, {"kill sw", "start sw"}} {
		for _, verb := range verbs {
			act(t, l, verb)
		}
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v: the old connection is still there", verbs)
		}
		c = awaitHello(t, ctl)
		awaitPorts(t, l, "sw", "to-r1")
		roomy(t, l)
	}
	act(t, l, "stop sw")
	nstest.Wait(t, "ps", func() error {
		if s := l.procs.Status("sw", file.Vswitchd, ""); s.State != "stopped" {
			return fmt.Errorf("state after stop: %+v", s)
		}
		return nil
	})
	act(t, l, "cont sw")
	awaitPorts(t, l, "sw", "to-r1")
}

// What r1 sends arrives at the port of the switch, or not; the counter is the switch's own.
func TestASwitchsLinksAreDisturbedLikeOthers(t *testing.T) {
	l := upLab(t, "swcut")
	awaitHello(t, controllerOf(t, l))
	awaitPorts(t, l, "sw", "to-r1")
	arrives := func() error {
		before := arrived(t, l)
		to := netip.AddrPortFrom(netip.MustParseAddr("ff02::1").WithZone("to-sw"), 9)
		err := wires.In(l.plan.Node("r1").Netns, func() error { return send(to) })
		if err == nil && arrived(t, l) == before {
			return fmt.Errorf("nothing arrives, %d before", before)
		}
		return err
	}
	nstest.Wait(t, "ovs-ofctl dump-ports", arrives)
	for _, verb := range []string{"cut sw r1", "unplug sw", "remove r1 sw"} {
		act(t, l, verb)
		if arrives() == nil {
			t.Errorf("packets arrive after %s", verb)
		}
		act(t, l, "heal sw")
		nstest.Wait(t, "ovs-ofctl dump-ports after "+verb+" and heal", arrives)
		awaitPorts(t, l, "sw", "to-r1")
		roomy(t, l)
	}
}

// arrived is how many packets the switch has received from r1; -1 while it has no such port.
func arrived(t *testing.T, l *Lab) (n int) {
	t.Helper()
	out, err := l.Output(t.Context(), "sw", "ovs-ofctl", "-O", "OpenFlow15", "dump-ports", switches.Bridge, "to-r1")
	if err != nil {
		return -1
	}
	_, rest, _ := strings.Cut(string(out), "rx pkts=")
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return n
}

func send(to netip.AddrPort) error {
	c, err := dial(to)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("x"))
	return err
}

func TestOneWordMakesRoutersSwitches(t *testing.T) {
	text := "nodes: {ctl: controller, a: {kind: router, service: true, block: 7}, b: router, c: switch, h: host}\nlinks: [[a, b], [b, c], [h, c]]\n"
	for _, test := range []struct{ text, plane, want string }{
		{text, "", "router router switch"},
		{"network: {plane: openflow}\n" + text, "", "switch switch switch"},
		{text, file.OpenFlowPlane, "switch switch switch"},
		{"network: {plane: openflow}\n" + text, file.LinuxPlane, "router router switch"},
		{"network: {plane: emulated}\n" + text, "", "emulated emulated switch"},
		{text, file.EmulatedPlane, "emulated emulated switch"},
		{"network: {plane: emulated}\n" + text, file.LinuxPlane, "router router switch"},
	} {
		f, err := file.Parse("t.yaml", []byte(test.text))
		if err == nil && test.plane != "" {
			err = f.SetPlane(test.plane)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(f.Node("a").Kind, " ", f.Node("b").Kind, " ", f.Node("c").Kind); got != test.want {
			t.Errorf("plane %q of %q: %s, want %s", test.plane, test.text, got, test.want)
		}
		if a := plan.Make(f).Node("a"); !a.Service || a.Block != 7 {
			t.Errorf("a is %+v", a.Node)
		}
	}
	f, _ := file.Parse("t.yaml", []byte(text))
	if err := f.SetPlane("cloud"); err == nil {
		t.Error("the plane cloud was taken")
	}
	f, err := file.Load("../../examples/underlay.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetPlane(file.OpenFlowPlane); err == nil || !strings.Contains(err.Error(), `offers tunnels to hosts, and on plane openflow it is a switch`) {
		t.Errorf("tunnels of hosts on switches: %v", err)
	} else if f.Network.Plane != file.LinuxPlane || f.SetPlane(file.EmulatedPlane) != nil {
		t.Errorf("the plane is %s after a refusal, and emulated is refused: %v", f.Network.Plane, f.SetPlane(file.EmulatedPlane))
	}
}
