package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"scaffold.dev/scaffold/bench/place"
	"scaffold.dev/scaffold/internal/openflow/ovs"
)

// The two hosts at the switch.
const (
	reactiveFrom, reactiveTo       = "fd5e::1", "fd5e::2"
	reactiveFromMAC, reactiveToMAC = "02:5c:af:00:00:01", "02:5c:af:00:00:02"
)

// A reactiveNet is one Open vSwitch between two hosts, each in a namespace of its own.
type reactiveNet struct {
	dir            string // of all files of the benchmark
	sw, from, to   *place.Place
	its            ovs.Instance
	server, daemon *exec.Cmd
}

func newReactiveNet(ctx context.Context) (n *reactiveNet, err error) {
	n = &reactiveNet{}
	if n.dir, err = os.MkdirTemp("", "reactive"); err != nil { // short: a socket's name has 107 bytes
		return nil, err
	}
	n.its.Dir = filepath.Join(n.dir, "ovs")
	for _, step := range []func(context.Context) error{n.join, n.startSwitch} {
		if err := step(ctx); err != nil {
			n.close()
			return nil, err
		}
	}
	return n, nil
}

func (n *reactiveNet) close() {
	for _, cmd := range []*exec.Cmd{n.daemon, n.server} {
		if cmd != nil {
			cmd.Process.Kill() // it may be gone
			cmd.Wait()         //nolint:errcheck // it was killed
		}
	}
	for _, p := range []*place.Place{n.sw, n.from, n.to} {
		if p != nil {
			p.Close()
		}
	}
	os.RemoveAll(n.dir)
}

func (n *reactiveNet) join(ctx context.Context) (err error) {
	for _, p := range []**place.Place{&n.sw, &n.from, &n.to} {
		if *p, err = place.New(); err != nil {
			return err
		}
	}
	if err := n.sw.IP(ctx, nil, "link set lo up"); err != nil {
		return err
	}
	return errors.Join(n.plug(ctx, n.from, "p1", reactiveFrom, reactiveFromMAC, reactiveTo, reactiveToMAC),
		n.plug(ctx, n.to, "p2", reactiveTo, reactiveToMAC, reactiveFrom, reactiveFromMAC))
}

// plug gives a host a link to the switch. It knows the other's hardware address: nobody need ask.
func (n *reactiveNet) plug(ctx context.Context, host *place.Place, port, addr, mac, peer, peerMAC string) error {
	if err := n.sw.IP(ctx, host, "link add "+port+" up type veth peer name eth0 address "+mac+" netns %far"); err != nil {
		return err
	}
	for _, args := range []string{"link set eth0 up", "addr add " + addr + "/64 dev eth0 nodad", "neigh add " + peer + " lladdr " + peerMAC + " dev eth0"} {
		if err := host.IP(ctx, nil, args); err != nil {
			return err
		}
	}
	return nil
}

func (n *reactiveNet) startSwitch(ctx context.Context) (err error) {
	if err := n.its.Check(); err != nil {
		return err
	}
	if err := os.Mkdir(n.its.Dir, 0o755); err != nil {
		return err
	}
	if _, err := n.run(ctx, n.its.Create); err != nil {
		return err
	}
	if n.server, err = n.begin(n.its.Database); err != nil {
		return err
	}
	if err := place.Await(ctx, "ovsdb-server", n.its.Answers); err != nil {
		return err
	}
	bridge := ovs.Bridge{Name: reactiveBridge, Protocols: "OpenFlow13", Ports: []ovs.Port{{Name: "p1", Number: 1}, {Name: "p2", Number: 2}}}
	if _, err := n.run(ctx, func() (*exec.Cmd, error) { return n.its.Configure(ovs.Config{Bridges: []ovs.Bridge{bridge}}) }); err != nil {
		return err
	}
	if n.daemon, err = n.begin(n.its.Daemon); err != nil {
		return err
	}
	if _, err := n.run(ctx, n.its.Settle); err != nil {
		return err
	}
	_, _, err = ovs.Widen(n.daemon.Process.Pid, ovs.Buffer)
	return err
}

const reactiveBridge = "br0"

func (n *reactiveNet) run(ctx context.Context, prepare func() (*exec.Cmd, error)) (string, error) {
	cmd, err := prepare()
	if err != nil {
		return "", err
	}
	return n.sw.Run(ctx, cmd)
}

func (n *reactiveNet) begin(prepare func() (*exec.Cmd, error)) (*exec.Cmd, error) {
	cmd, err := prepare()
	if err != nil {
		return nil, err
	}
	return cmd, n.sw.Start(cmd)
}

// obey gives the switch another controller.
func (n *reactiveNet) obey(ctx context.Context, target string) error {
	_, err := n.run(ctx, func() (*exec.Cmd, error) { return n.its.Vsctl("set-controller", reactiveBridge, target) })
	return err
}

var flowCount = regexp.MustCompile(`flow_count=(\d+)`)

// flows is how many flows the switch has that a controller put in for somebody's packet.
func (n *reactiveNet) flows(ctx context.Context) (int, error) {
	out, err := n.run(ctx, func() (*exec.Cmd, error) {
		return n.its.Command("ovs-ofctl", "-O", "OpenFlow13", "dump-aggregate", reactiveBridge)
	})
	if err != nil {
		return 0, err
	}
	m := flowCount.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("ovs-ofctl dump-aggregate: no flow_count in %q", out)
	}
	all, err := strconv.Atoi(m[1])
	return all - 1, err // without the one that punts
}
