package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/frr"
)

// frrName is the directory of what FRR's daemons of a node share.
const frrName = "frr"

// frrDaemons are those that a lab starts, by the protocol that they are for.
var frrDaemons = map[string]string{OSPF6: "ospf6d", OSPF: "ospfd", BGP: "bgpd"}

// privateAS is the first number of the range for private use of four octets (RFC 6996).
const privateAS = 4200000000

// frrRouters are the routers whose daemons the lab runs.
func (p *Plan) frrRouters() (nodes []*PlanNode) {
	for _, n := range p.Nodes {
		if n.Kind == FRR && len(n.Protocols) != 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// frrProcesses are the daemons that run on the node for certain, zebra first.
func (n *Node) frrProcesses() []string {
	names := []string{"zebra"}
	for _, p := range n.Protocols {
		names = append(names, frrDaemons[p])
	}
	if len(n.Announce) != 0 {
		names = append(names, "staticd")
	}
	return names
}

// runsFRR reports whether a name is that of FRR on the node, or of one of its daemons.
func (n *Node) runsFRR(name string) bool {
	return n.Kind == FRR && len(n.Protocols) != 0 && (name == frrName || slices.Contains(n.frrProcesses(), name))
}

// restartFRR ends all daemons of a router without letting them say goodbye, and starts them.
func (l *Lab) restartFRR(ctx context.Context, n *PlanNode) error {
	for _, name := range n.frrProcesses() {
		if err := l.end(ctx, n.Name, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.startRouting(ctx, n)
}

// checkFRR says that FRR is missing before anything is made.
func (l *Lab) checkFRR() error {
	for _, n := range l.plan.frrRouters() {
		if _, err := frr.Find(); err != nil {
			return fmt.Errorf("%s:%d: node %q of kind %s: %w", l.File.Path, n.Line, n.Name, n.Kind, err)
		}
	}
	return nil
}

// startFRR starts the daemons of all such routers, some routers at a time.
func (l *Lab) startFRR(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.NumCPU())
	for _, n := range l.plan.frrRouters() {
		group.Go(func() error { return l.startRouting(ctx, n) })
	}
	return group.Wait()
}

// startRouting starts the daemons of one router, and gives them the lines of the file when all run.
func (l *Lab) startRouting(ctx context.Context, n *PlanNode) error {
	for _, name := range n.frrProcesses() {
		if l.running(n.Name, name) {
			return fmt.Errorf("%s/%s runs already", n.Name, name)
		}
	}
	if err := l.lendAddresses(n); err != nil {
		return err
	}
	files, err := l.plan.frrConfig(n).Files()
	if err != nil {
		return err
	}
	dir := l.ProgramDir(n.Name, frrName)
	processes, err := frr.Prepare(frr.Spec{Name: n.Name, Dir: dir, Files: files})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, fmt.Errorf("FRR of %s was not ready in %v", n.Name, settleTime))
	defer cancel()
	for _, p := range processes {
		if err := l.startRoutingDaemon(ctx, n, p); err != nil {
			return err
		}
	}
	if n.Config == "" {
		return nil
	}
	if err := frr.Configure(ctx, dir, n.Config); err != nil {
		return fmt.Errorf("%s:%d: config of router %q: %w", l.File.Path, n.Line, n.Name, err)
	}
	return nil
}

func (l *Lab) startRoutingDaemon(ctx context.Context, n *PlanNode, p frr.Process) error {
	cmd := exec.Command(p.Argv[0], append(p.Argv[1:], "--log", "stdout")...)
	if err := l.spawn(n, p.Name, cmd); err != nil {
		return err
	}
	return poll(ctx, func() error {
		if err := l.exited(n.Name, p.Name); err != nil {
			return &finalError{err}
		}
		for _, file := range p.Ready {
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("%s/%s has not made its socket: %w", n.Name, p.Name, err)
			}
		}
		return nil
	})
}

// lendAddresses lets OSPF for IPv4 speak on links that are no subnets: their ports have the router's own address.
func (l *Lab) lendAddresses(n *PlanNode) error {
	if !slices.Contains(n.Protocols, OSPF) {
		return nil
	}
	w := newWirer()
	defer w.close()
	for _, p := range n.Ports {
		if p.Far.Kind == FRR {
			if err := w.addr(n.Netns, p.Dev, netip.PrefixFrom(n.Own4, 32)); err != nil {
				return err
			}
		}
	}
	return nil
}

// frrConfig is what the daemons of a router are told.
func (p *Plan) frrConfig(n *PlanNode) frr.Config {
	number := uint32(slices.Index(p.Nodes, n) + 1)
	c := frr.Config{Name: n.Name, Number: number, Ports: []frr.Port{{Name: "lo", Passive: true}}, Behind: n.Announce}
	ospf6, ospf := slices.Contains(n.Protocols, OSPF6), slices.Contains(n.Protocols, OSPF)
	if ospf6 || ospf {
		c.OSPF = &frr.OSPF{NoIPv6: !ospf6, NoIPv4: !ospf}
	}
	if slices.Contains(n.Protocols, BGP) {
		c.BGP = &frr.BGP{AS: n.AS}
		if n.AS == 0 {
			c.BGP.AS = privateAS + number
		}
	}
	for _, port := range n.Ports {
		one := frr.Port{Name: port.Dev, Cost: port.Link.Cost, Passive: port.Far.Kind != FRR}
		if c.BGP != nil && slices.Contains(port.Far.Protocols, BGP) {
			one.Peer = &frr.Peer{}
		}
		c.Ports = append(c.Ports, one)
	}
	return c
}
