package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"scaffold.dev/scaffold/internal/ovs"
)

// A switch is two processes, each in a cgroup of its own: what the controller drives, and its database.
const (
	vswitchd = "vswitchd"
	ovsdb    = "ovsdb"
)

// switchBridge is the name of the bridge of every switch: each has its own Open vSwitch.
const switchBridge = "br0"

// openflowPort is where the controller listens for switches, on the management network.
const openflowPort = 6653

// datapaths is the first datapath id but one: that of the N-th node is N more. The router's address on the
// switch's ports follows from it.
const datapaths = 0x00025caf000000

// switchTime bounds how long Open vSwitch's database may take to answer.
const switchTime = 20 * time.Second

// beSwitch gives a node what follows from its number among all.
func (n *PlanNode) beSwitch(number int) {
	n.Datapath = datapaths + uint64(number)
	n.LinkLocal = switchAddr(n.Datapath)
}

// switchAddr is the address by which a switch is known on its links: that of a device whose hardware address
// is the low half of the datapath id, as one that was given locally.
func switchAddr(datapath uint64) netip.Addr {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], datapath)
	mac := id[2:]
	mac[0] = mac[0]&^1 | 2
	b := linkLocal.Addr().As16()
	copy(b[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	return netip.AddrFrom16(b)
}

// instance is the Open vSwitch of a node.
func (l *Lab) instance(n *PlanNode) ovs.Instance {
	return ovs.Instance{Dir: filepath.Join(l.nodeDir(n), "ovs"), Look: l.lookPath}
}

// checkSwitches is an error if the lab has switches and the machine has no Open vSwitch.
func (l *Lab) checkSwitches() error {
	for _, n := range l.plan.Nodes {
		if n.Kind != Switch {
			continue
		}
		if err := l.instance(n).Check(); err != nil {
			return fmt.Errorf("%s is a switch: %w", n.Name, err)
		}
	}
	return nil
}

// openflowArgv is what the controller is told about the lab's switches.
func (l *Lab) openflowArgv(controller *PlanNode) (argv []string) {
	for _, n := range l.plan.Nodes {
		if n.Kind != Switch {
			continue
		}
		if argv == nil {
			argv = []string{"--openflow", openflowTarget(controller)}
		}
		argv = append(argv, "--switch", fmt.Sprintf("%s=%016x,service=%v,block=%d", n.Name, n.Datapath, n.Service, n.Block)+narrow(n))
		for _, p := range n.Peers {
			argv = append(argv, "--switch-link", fmt.Sprintf("switch=%s,peer=%s,port=%s,via=%s", n.Name, p.Name, p.Dev, p.Via))
		}
	}
	return argv
}

// narrow are the links of a switch that take less than hosts send: OpenFlow does not tell.
func narrow(n *PlanNode) (text string) {
	for _, p := range n.Ports {
		if p.Under == nil && p.Link.MTU < defaultMTU {
			text += fmt.Sprintf(",mtu=%s:%d", p.Dev, p.Link.MTU)
		}
	}
	return text
}

func openflowTarget(n *PlanNode) string {
	return "tcp:" + netip.AddrPortFrom(n.Management, openflowPort).String()
}

// openflowTargets are those of all controllers: the one that leads answers.
func (l *Lab) openflowTargets() (targets []string) {
	for _, n := range l.File.of(Controller) {
		targets = append(targets, openflowTarget(l.plan.Node(n.Name)))
	}
	return targets
}

// startSwitch starts what does not run of a switch.
func (l *Lab) startSwitch(ctx context.Context, n *PlanNode) error {
	i := l.instance(n)
	if !l.running(n.Name, ovsdb) {
		if err := l.startDatabase(ctx, n, i); err != nil {
			return err
		}
	}
	if l.running(n.Name, vswitchd) {
		return nil
	}
	configure := func() (*exec.Cmd, error) { return i.Configure(l.switchConfig(n)) }
	if err := l.runOVS(n, configure); err != nil {
		return err
	}
	cmd, err := i.Daemon()
	if err != nil {
		return err
	}
	if err := l.spawn(n, vswitchd, cmd); err != nil {
		return err
	}
	return l.settleSwitch(n, i)
}

// settleSwitch waits until the daemon has done what it was told, and makes room at its ports.
func (l *Lab) settleSwitch(n *PlanNode, i ovs.Instance) error {
	if l.processStatus(n, vswitchd, "").State != "running" {
		return l.exited(n.Name, vswitchd) // or stopped: it will follow when it goes on
	}
	if err := l.runOVS(n, i.Settle); err != nil {
		return errors.Join(err, l.exited(n.Name, vswitchd))
	}
	for _, pid := range l.cgroup(n.Name).child(vswitchd).pids() {
		if _, _, err := ovs.Widen(pid, ovs.Buffer); err != nil {
			l.opt.logf("lab %s: %s drops bursts: %v", l.File.Name, n.Name, err) // as it does on other machines
		}
	}
	return nil
}

// startDatabase starts a switch's database, an empty one the first time, and waits until it answers.
func (l *Lab) startDatabase(ctx context.Context, n *PlanNode, i ovs.Instance) error {
	if err := os.MkdirAll(i.Dir, 0o755); err != nil {
		return err
	}
	if !i.Created() {
		if err := l.runOVS(n, i.Create); err != nil {
			return err
		}
	}
	cmd, err := i.Database()
	if err != nil {
		return err
	}
	if err := l.spawn(n, ovsdb, cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, switchTime)
	defer cancel()
	return poll(ctx, func() error {
		if err := l.exited(n.Name, ovsdb); err != nil {
			return &finalError{err}
		}
		return i.Answers()
	})
}

// switchConfig is what the Open vSwitch of a node is told.
func (l *Lab) switchConfig(n *PlanNode) ovs.Config {
	b := ovs.Bridge{Name: switchBridge, Description: n.Name, DatapathID: n.Datapath, Controllers: l.openflowTargets()}
	for _, p := range n.data() {
		b.Ports = append(b.Ports, ovs.Port{Name: p.Dev, Number: p.Number})
	}
	return ovs.Config{Offload: true, Bridges: []ovs.Bridge{b}}
}

// repatch tells a switch of a port that was removed or healed. By itself Open vSwitch would go on with the
// device that is gone, whatever is made in its place.
func (l *Lab) repatch(n *PlanNode, p *Port, verb string) error {
	if n.Kind != Switch || !l.running(n.Name, ovsdb) {
		return nil // it is configured anew when it starts
	}
	i := l.instance(n)
	switch verb {
	case "remove":
		words := []string{"--if-exists", "del-port", switchBridge, p.Dev}
		if !l.running(n.Name, vswitchd) {
			words = append([]string{"--no-wait"}, words...) // nobody would do it
		}
		return l.runOVS(n, func() (*exec.Cmd, error) { return i.Vsctl(words...) })
	case "heal", "repair":
		if err := l.runOVS(n, func() (*exec.Cmd, error) { return i.Configure(l.switchConfig(n)) }); err != nil {
			return err
		}
		return l.settleSwitch(n, i)
	}
	return nil
}

// runOVS runs one of Open vSwitch's tools to its end.
func (l *Lab) runOVS(n *PlanNode, prepare func() (*exec.Cmd, error)) error {
	cmd, err := prepare()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := l.start(n, execGroup, cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %s: %w: %s", n.Name, filepath.Base(cmd.Path), err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}
