package routing

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
	"time"

	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/frr"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
	"scaffold.dev/scaffold/internal/lab/state"
)

// privateAS is the first number of the range for private use of four octets (RFC 6996).
const privateAS = 4200000000

// readyTime bounds how long the daemons of a router may take until all have made their sockets.
const readyTime = 60 * time.Second

// Processes start FRR's daemons inside nodes and know what became of them.
type Processes interface {
	Spawn(n *plan.Node, name string, cmd *exec.Cmd) error
	Kill(ctx context.Context, node, name string) error
	Running(node, name string) bool
	Exited(node, name string) error
}

// A Config is what routing needs of the rest of a lab.
type Config struct {
	Plan      *plan.Plan
	Dir       state.Dir
	Processes Processes
	Lend      func(n *plan.Node, dev string, addr netip.Prefix) error      // gives an interface of a router an address
	Learned   func(ctx context.Context) (routes map[string]int, err error) // how many the engine has of each router's daemons
	Log       func(format string, args ...any)
}

// Routing is all routers of one lab that FRR's daemons speak for.
type Routing struct {
	Config
}

// New starts nothing.
func New(c Config) *Routing { return &Routing{c} }

// Restart ends all daemons of a router without letting them say goodbye, and starts them.
func (r *Routing) Restart(ctx context.Context, n *plan.Node) error {
	for _, name := range n.FRRProcesses() {
		if err := r.Processes.Kill(ctx, n.Name, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return r.Start(ctx, n)
}

// Check says that FRR is missing before anything is made.
func (r *Routing) Check() error {
	for _, n := range r.Plan.FRRRouters() {
		if _, err := frr.Find(); err != nil {
			return fmt.Errorf("%s:%d: node %q of kind %s: %w", r.Plan.File.Path, n.Line, n.Name, n.Kind, err)
		}
	}
	return nil
}

// StartAll starts the daemons of all such routers, some routers at a time.
func (r *Routing) StartAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.NumCPU())
	for _, n := range r.Plan.FRRRouters() {
		group.Go(func() error { return r.Start(ctx, n) })
	}
	return group.Wait()
}

// Start starts the daemons of one router, and gives them the lines of the file when all run.
func (r *Routing) Start(ctx context.Context, n *plan.Node) error {
	for _, name := range n.FRRProcesses() {
		if r.Processes.Running(n.Name, name) {
			return fmt.Errorf("%s/%s runs already", n.Name, name)
		}
	}
	if err := r.lendAddresses(n); err != nil {
		return err
	}
	files, err := configOf(r.Plan, n).Files()
	if err != nil {
		return err
	}
	dir := r.Dir.Program(n.Name, file.FRRName)
	processes, err := frr.Prepare(frr.Spec{Name: n.Name, Dir: dir, Files: files})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("FRR of %s was not ready in %v", n.Name, readyTime))
	defer cancel()
	for _, p := range processes {
		if err := r.startDaemon(ctx, n, p); err != nil {
			return err
		}
	}
	if n.Config == "" {
		return nil
	}
	if err := frr.Configure(ctx, dir, n.Config); err != nil {
		return fmt.Errorf("%s:%d: config of router %q: %w", r.Plan.File.Path, n.Line, n.Name, err)
	}
	return nil
}

func (r *Routing) startDaemon(ctx context.Context, n *plan.Node, p frr.Process) error {
	cmd := exec.Command(p.Argv[0], append(p.Argv[1:], "--log", "stdout")...)
	if err := r.Processes.Spawn(n, p.Name, cmd); err != nil {
		return err
	}
	return poll.Until(ctx, func() error {
		if err := r.Processes.Exited(n.Name, p.Name); err != nil {
			return poll.Final(err)
		}
		for _, socket := range p.Ready {
			if _, err := os.Stat(socket); err != nil {
				return fmt.Errorf("%s/%s has not made its socket: %w", n.Name, p.Name, err)
			}
		}
		return nil
	})
}

// lendAddresses lets OSPF for IPv4 speak on links that are no subnets: their ports have the router's own address.
func (r *Routing) lendAddresses(n *plan.Node) error {
	if !slices.Contains(n.Protocols, file.OSPF) {
		return nil
	}
	for _, p := range n.Ports {
		if p.Far.Kind == file.FRR {
			if err := r.Lend(n, p.Dev, netip.PrefixFrom(n.Own4, 32)); err != nil {
				return err
			}
		}
	}
	return nil
}

// configOf is what the daemons of a router are told.
func configOf(p *plan.Plan, n *plan.Node) frr.Config {
	number := uint32(slices.Index(p.Nodes, n) + 1)
	c := frr.Config{Name: n.Name, Number: number, Ports: []frr.Port{{Name: "lo", Passive: true}}, Behind: n.Announce}
	ospf6, ospf := slices.Contains(n.Protocols, file.OSPF6), slices.Contains(n.Protocols, file.OSPF)
	if ospf6 || ospf {
		c.OSPF = &frr.OSPF{NoIPv6: !ospf6, NoIPv4: !ospf}
	}
	if slices.Contains(n.Protocols, file.BGP) {
		c.BGP = &frr.BGP{AS: n.AS}
		if n.AS == 0 {
			c.BGP.AS = privateAS + number
		}
	}
	for _, port := range n.Ports {
		one := frr.Port{Name: port.Dev, Cost: port.Link.Cost, Passive: port.Far.Kind != file.FRR}
		if c.BGP != nil && slices.Contains(port.Far.Protocols, file.BGP) {
			one.Peer = &frr.Peer{}
		}
		c.Ports = append(c.Ports, one)
	}
	return c
}
