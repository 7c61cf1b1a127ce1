// Package agents runs two agents of boost in the nodes of a lab, one at each end of a path, without a controller: for the
// demo and the benchmark of boost.
package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/boost/boostd"
	"scaffold.dev/scaffold/internal/lab"
)

// endAtMost is how long an agent may take to end.
const endAtMost = 5 * time.Second

// A Site is one end of the path: the node of the agent, and that of the host behind it, which it reaches by one port.
type Site struct {
	Agent, Host string
	Spare       string       // the node of another agent there, which goes on where the first one is lost; "": none
	By          string       // the node at the port of each; "": the host
	Doors       []netip.Addr // where others reach the agent, one for each path; none: at its node's own address
}

// agents are the site's.
func (s *Site) agents() []string {
	if s.Spare == "" {
		return []string{s.Agent}
	}
	return []string{s.Agent, s.Spare}
}

// doors are those of one of its agents, as text.
func (s *Site) doors(l *lab.Lab, agent string) (all []string) {
	if agent == s.Agent {
		for _, a := range s.Doors {
			all = append(all, strconv.Quote(a.String()))
		}
	}
	if all == nil {
		all = []string{strconv.Quote(l.Plan().Node(agent).Own4.String())}
	}
	return all
}

// port is the interface of one of its agents towards the host.
func (s *Site) port(l *lab.Lab, agent string) string {
	for _, p := range l.Plan().Node(agent).Ports {
		if p.Far.Name == cmp.Or(s.By, s.Host) {
			return p.Dev
		}
	}
	return ""
}

// A Pair is the agents of two sites that run.
type Pair struct {
	lab       *lab.Lab
	near, far Site
	ports     []uint16
	also      string // lines of both agents' files
	lane      string // what each of their lanes has besides, as "key: value"
	dir       string
	agents    map[string]*exec.Cmd // by node
}

// Start starts the agents, which carry what the near site's host asks of the far one's at these ports, and waits until they
// do. It tries that at the first port, where nobody listens.
func Start(ctx context.Context, l *lab.Lab, near, far Site, ports ...uint16) (p *Pair, err error) {
	// In the lab's directory, which goes with the lab, also where whoever has it is killed.
	p = &Pair{lab: l, near: near, far: far, ports: ports, dir: filepath.Join(l.Dir(), "agents"), agents: map[string]*exec.Cmd{}}
	if err = os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	for _, at := range p.all() {
		if err == nil {
			err = p.start(ctx, at)
		}
	}
	if err == nil {
		err = p.carried(ctx)
	}
	if err != nil {
		p.End()
		return nil, err
	}
	return p, nil
}

// all are the agents.
func (p *Pair) all() []string { return append(p.near.agents(), p.far.agents()...) }

// RestartWith ends all agents and starts them again with further lines in their files, and waits until connections are carried.
func (p *Pair) RestartWith(ctx context.Context, lines string) error {
	p.also = lines
	p.stop()
	for _, at := range p.all() {
		if err := p.start(ctx, at); err != nil {
			return err
		}
	}
	return p.carried(ctx)
}

// Doors are where the two sites' agents reach each other from the next restart on.
func (p *Pair) Doors(near, far []netip.Addr) { p.near.Doors, p.far.Doors = near, far }

// Lanes has each lane say something more, as "key: value", from the next restart on; "": nothing.
func (p *Pair) Lanes(more string) { p.lane = more }

// TakeLanes is an error where agents do not know what Lanes would have their lanes say.
func (p *Pair) TakeLanes(ctx context.Context, more string) error {
	was := p.lane
	p.lane = more
	path, err := p.settings(p.near.Agent)
	if p.lane = was; err != nil {
		return err
	}
	out, err := p.lab.Output(ctx, p.near.Agent, p.lab.Binary(), "boostd", "--check", "--config", path)
	if err != nil {
		line, _, _ := strings.Cut(string(out), "\n")
		err = fmt.Errorf("%w: %s", err, line)
	}
	_, again := p.settings(p.near.Agent)
	return errors.Join(err, again)
}

// Keeper is the process of an agent that was started: it has started its worker.
func (p *Pair) Keeper(name string) (pid int) { return p.agents[name].Process.Pid }

// Address is the IPv4 address of a host of the lab, with its network.
func Address(l *lab.Lab, node string) netip.Prefix {
	for _, a := range l.Plan().Node(node).Ports[0].Addrs {
		if a.Addr().Is4() {
			return a
		}
	}
	return netip.Prefix{}
}

// Restart starts an agent that was killed, and waits until connections are carried.
func (p *Pair) Restart(ctx context.Context, name string) error {
	if err := p.start(ctx, name); err != nil {
		return err
	}
	return p.carried(ctx)
}

func (p *Pair) start(ctx context.Context, name string) error {
	path, err := p.settings(name)
	if err != nil {
		return err
	}
	cmd, err := p.lab.Command(ctx, p.lab.Binary(), "boostd", "--config", path, "--bpffs", filepath.Join(p.lab.Dir(), "bpf"))
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := p.lab.Start(name, cmd); err != nil {
		return err
	}
	p.agents[name] = cmd
	return nil
}

func (p *Pair) log(name string) string { return filepath.Join(p.dir, name+".log") }

// Log is what an agent has said.
func (p *Pair) Log(name string) string {
	text, _ := os.ReadFile(p.log(name))
	return string(text)
}

// settings writes an agent's file. Its only port leads to the host: what it carries comes and goes there.
func (p *Pair) settings(name string) (path string, err error) {
	own := &p.near
	if slices.Contains(p.far.agents(), name) {
		own = &p.far
	}
	at := own.doors(p.lab, name)
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ndoor: %s\nports: [%s]\nkey: %s\n", name, at[0], own.port(p.lab, name), filepath.Join(p.dir, name+".key"))
	if len(at) > 1 {
		fmt.Fprintf(&b, "paths: [%s]\n", strings.Join(at[1:], ", "))
	}
	b.WriteString("agents:\n")
	for _, site := range []*Site{&p.near, &p.far} {
		for _, other := range site.agents() {
			if other == name {
				continue
			}
			key, _, err := boostd.Key(filepath.Join(p.dir, other+".key"))
			if err != nil {
				return "", err
			}
			at := site.doors(p.lab, other)
			fmt.Fprintf(&b, "  %s: {door: %s, paths: [%s], key: %s}\n", other, at[0], strings.Join(at[1:], ", "), boostd.Public(key))
		}
	}
	b.WriteString("lanes:\n")
	more := ""
	if p.lane != "" {
		more = ", " + p.lane
	}
	for _, port := range p.ports {
		fmt.Fprintf(&b, "- {client: %v, server: %v, port: %d, near: [%s], far: [%s]%s}\n",
			Address(p.lab, p.near.Host).Masked(), Address(p.lab, p.far.Host).Masked(), port, strings.Join(p.near.agents(), ", "), strings.Join(p.far.agents(), ", "), more)
	}
	b.WriteString(p.also)
	path = filepath.Join(p.dir, name+".yaml")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// lookEach is how often it is looked whether connections are carried.
const lookEach = 100 * time.Millisecond

// carried waits until the far agent has a socket in the client's name.
func (p *Pair) carried(ctx context.Context) error {
	client, server := Address(p.lab, p.near.Host).Addr(), Address(p.lab, p.far.Host).Addr()
	at := netip.AddrPortFrom(server, p.ports[0])
	l, err := p.Listen(ctx, at.Port())
	if err != nil {
		return err
	}
	defer l.Close()
	for ctx.Err() == nil {
		c, err := p.Dial(at.Port())
		for range 2 { // a client that was accepted at once waits for the far agent's socket, too
			if err == nil {
				out, _ := p.lab.Output(ctx, p.far.Agent, "ss", "-Htn", "dport", "=", strconv.Itoa(int(at.Port())))
				if strings.Contains(string(out), client.String()) {
					c.Close()
					return nil
				}
			}
			select {
			case <-time.After(lookEach):
			case <-ctx.Done():
			}
		}
		if err == nil {
			c.Close()
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("no connection is carried; the agents say:\n%s%s", p.Log(p.near.Agent), p.Log(p.far.Agent)))
}

// Listen listens at the far host.
func (p *Pair) Listen(ctx context.Context, port uint16) (l net.Listener, err error) {
	err = p.lab.In(p.far.Host, func() (err error) {
		var lc net.ListenConfig
		l, err = lc.Listen(ctx, "tcp", netip.AddrPortFrom(Address(p.lab, p.far.Host).Addr(), port).String())
		return err
	})
	return l, err
}

// Dial connects from the near host to the far one.
func (p *Pair) Dial(port uint16) (c net.Conn, err error) {
	err = p.lab.In(p.near.Host, func() (err error) {
		c, err = net.DialTimeout("tcp", netip.AddrPortFrom(Address(p.lab, p.far.Host).Addr(), port).String(), endAtMost)
		return err
	})
	return c, err
}

// Worker is the process that does an agent's work now; 0: none does.
func (p *Pair) Worker(name string) (pid int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.agents[name].Process.Pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread that has ended has none
		if n, _ := fmt.Sscan(string(text), &pid); n == 1 {
			return pid
		}
	}
	return 0
}

// KillWorker kills the process that does an agent's work.
func (p *Pair) KillWorker(name string) error {
	if pid := p.Worker(name); pid != 0 {
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return fmt.Errorf("agent %s has no worker; it says:\n%s", name, p.Log(name))
}

// Kill kills both processes of an agent.
func (p *Pair) Kill(name string) error {
	cmd := p.agents[name]
	err := cmd.Process.Kill() // its worker dies with it
	cmd.Wait()                //nolint:errcheck // killed
	delete(p.agents, name)
	return err
}

// End ends both agents, which leave nothing.
func (p *Pair) End() {
	p.stop()
	os.RemoveAll(p.dir)
}

func (p *Pair) stop() {
	for name, cmd := range p.agents {
		cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(endAtMost, func() { cmd.Process.Kill() })
		cmd.Wait() //nolint:errcheck // as it was asked to
		late.Stop()
		delete(p.agents, name)
	}
}
