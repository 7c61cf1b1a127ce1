package bench

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/sid"
)

// SiegeLab is the lab of floods that are no SYNs: a client that moves between two routers, two instances that go on
// with each other's flows, hosts that prove who they are, and somebody who sends in the name of any of them: from a router's
// place, for at a host's port packets are from that host.
const SiegeLab = `
name: benchsiege
network: {trust: keys}
services:
  on: {failover: continue}
nodes:
  ctl: controller
  ra: {kind: router, service: true}
  rb: router
  c1: host
  s1: host
  s2: host
  x1: router
links:
  - [c1, ra]
  - {ends: [c1, rb], unplugged: true}
  - [s1, ra]
  - [s2, ra]
  - [x1, ra]
  - [ra, rb]
`

// A SiegeSize is how much is sent, and what is measured meanwhile.
type SiegeSize struct {
	Rate     int // packets a second
	Flows    int // that move and fail over
	Failover int // flows that fail over beside confirmations
	Runs     int // moves and failovers of each kind
	Kinds    []string
}

// A besieger floods the instances of a service, and a client's flows with them move and fail over meanwhile.
type besieger struct {
	*moveBench
	size    SiegeSize
	to      netip.AddrPort
	servers map[string]*Server
	crowd   *gathering
}

// Siege measures how many flows break, how long they take to move and to fail over, and what daemons and kernel keep
// while hosts are flooded: beside a flood of the same size that nobody takes, which costs its sender as much.
func Siege(ctx context.Context, r *Rig, size SiegeSize) (Report, error) {
	load, _ := os.ReadFile("/proc/loadavg") // what else runs here, before the flood does
	b := &besieger{moveBench: &moveBench{Rig: r, service: "on", on: map[string]int{}}, size: size, servers: map[string]*Server{}}
	if err := b.open(ctx); err != nil {
		return b.rep, err
	}
	defer b.shut()
	for _, kind := range size.Kinds {
		flows := size.Flows
		if kind == "confirm" {
			flows = size.Failover
		}
		if err := b.one(ctx, kind, flows); err != nil {
			return b.rep, fmt.Errorf("a flood of %s: %w", stormNames[kind], err)
		}
	}
	b.rep.Notes = append(b.rep.Notes,
		fmt.Sprintf("%d packets a second from addresses all over the network, as long as anything is measured; %d moves and %d failovers of all flows beside each flood, in turn with as many beside one of frames to a MAC address that nobody has", size.Rate, size.Runs, size.Runs),
		"a move: from the link that is up to the last flow's answer; a failover: from the death of the process to the last flow's answer from the other instance",
		"client, servers, routers and flood share this machine's processors; its load before, in the last 1, 5 and 15 minutes: "+strings.Join(strings.SplitN(string(load), " ", 4)[:min(3, strings.Count(string(load), " ")+1)], ", "))
	return b.rep, nil
}

var stormNames = map[string]string{
	"hello": "HELLO at a router", "rsyn": "RSYN with many claims", "resume": "RESUME to the service", "confirm": "RESUME confirmations",
	"ping": "PING of the service", "probe": "PROBE of random sockets", "datagram": "UDP to random sockets",
}

func (b *besieger) open(ctx context.Context) (err error) {
	if b.target, err = serviceTarget(ctx, b.Rig, b.service); err != nil {
		return err
	}
	if b.to, err = netip.ParseAddrPort(b.target); err != nil {
		return err
	}
	if err := b.FreePorts(ctx, moveClient); err != nil {
		return err
	}
	for _, n := range failServers {
		if err := b.serve(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (b *besieger) serve(ctx context.Context, node string) (err error) {
	if b.servers[node], err = serve(b.Rig, node, b.target, "--resume"); err != nil {
		return err
	}
	live := 0
	for _, s := range b.servers {
		if s != nil {
			live++
		}
	}
	return awaitServing(ctx, b.Rig, b.service, 2*live) // TCP and UDP
}

func (b *besieger) shut() {
	for _, s := range b.servers {
		if s != nil {
			s.Kill() //nolint:errcheck // the lab ends with the bench
		}
	}
}

// one measures one kind of flood.
func (b *besieger) one(ctx context.Context, kind string, flows int) (err error) {
	if b.crowd, err = gather(b.Rig, moveClient, "tcp6", b.target, flows); err != nil {
		return err
	}
	defer b.crowd.close()
	at, err := b.assemble(ctx)
	if err != nil {
		return err
	}
	seen, err := b.lastEvent(ctx)
	if err != nil {
		return err
	}
	var moves, fails [2][]float64 // aside, in the flood: flows a second
	var memory [2]float64
	var rates []float64
	var hurt [2]damage // aside, in the flood
	for run := range b.size.Runs {
		for turn := range 2 {
			i := (run + turn) % 2 // who comes second gets what the first has left
			aside := i == 0
			flood, err := b.storm(kind, aside)
			if err != nil {
				return err
			}
			took, r, err := b.moveAll(ctx, flows)
			if err == nil {
				moves[i] = append(moves[i], float64(flows)/took)
				hurt[i].add("move", r)
				took, r, at, err = b.failAll(ctx, at)
			}
			if err == nil {
				fails[i] = append(fails[i], float64(flows)/took)
				hurt[i].add("failover", r)
				memory[i], err = b.memory(ctx)
			}
			sent, e := flood.end()
			if err != nil {
				return err
			}
			if e != nil {
				return e
			}
			if !aside {
				rates = append(rates, sent.PerSecond())
			}
			if err := b.serve(ctx, otherServer(at)); err != nil {
				return err
			}
		}
	}
	b.add(kind, flows, moves, fails, memory, rates, hurt)
	if err := b.told(ctx, kind, seen); err != nil {
		return err
	}
	for i, without := range []string{", without it", ""} {
		if len(hurt[i].how) > 0 {
			b.rep.Notes = append(b.rep.Notes, fmt.Sprintf("%s%s, flows that broke: %s", stormNames[kind], without, strings.Join(hurt[i].how, "; ")))
		}
	}
	return nil
}

func (b *besieger) lastEvent(ctx context.Context) (seq uint64, err error) {
	all, err := b.Events(ctx)
	for _, e := range all {
		seq = max(seq, e.Seq)
	}
	return seq, err
}

// told notes why hosts ended flows, beside the flood and aside.
func (b *besieger) told(ctx context.Context, kind string, seen uint64) error {
	all, err := b.Events(ctx)
	why := map[string]int{}
	for _, e := range all {
		if n, _ := strconv.Atoi(e.Attrs["flows"]); e.Seq > seen && e.Kind == "flow.reset" {
			why[e.Subject+": "+e.Attrs["reason"]] += n
		}
	}
	if len(why) > 0 {
		b.rep.Notes = append(b.rep.Notes, fmt.Sprintf("%s: flows that hosts ended, beside the flood and without it: %v", stormNames[kind], why))
	}
	return err
}

// damage is the flows that broke, and how.
type damage struct {
	flows int64
	how   []string
}

func (d *damage) add(when string, r agent.CrowdReport) {
	d.flows += r.Resets + r.Others
	if r.Resets > 0 {
		d.how = append(d.how, fmt.Sprintf("%d reset in a %s", r.Resets, when))
	}
	if r.Others > 0 {
		d.how = append(d.how, fmt.Sprintf("%d in a %s, the first by %s", r.Others, when, r.Broken))
	}
}

func (b *besieger) add(kind string, flows int, moves, fails [2][]float64, memory [2]float64, rates []float64, hurt [2]damage) {
	name := fmt.Sprintf("%s, %d flows: ", stormNames[kind], flows)
	row := func(what, unit, aim, peer string, samples ...float64) {
		b.rep.Rows = append(b.rep.Rows, NewRow(name+what, unit, aim, peer, samples))
	}
	ratio := func(what string, x [2][]float64) {
		pairs := make([]float64, len(x[0]))
		for i := range pairs {
			pairs[i] = x[1][i] / x[0][i]
		}
		row(what+", of those without", "ratio", ">= 0.9", fmt.Sprintf("%.0f/s, without %.0f/s", Quantile(x[1], 0.5), Quantile(x[0], 0.5)), pairs...)
	}
	row("live flows hurt", "", "= 0", fmt.Sprintf("without: %d", hurt[0].flows), float64(hurt[1].flows))
	ratio("moves a second", moves)
	ratio("failovers a second", fails)
	row("memory more than without: kernel's maps, daemons, TCP", "MB", "<= 16", "", (memory[1]-memory[0])/1e6)
	row("packets", "1/s", "", "", rates...)
}

func otherServer(n string) string {
	for _, other := range failServers {
		if other != n {
			return other
		}
	}
	return n
}

// assemble brings all flows to one instance and returns it; the other one serves too.
func (b *besieger) assemble(ctx context.Context) (at string, err error) {
	_, _, at, err = b.failAll(ctx, failServers[0])
	if err == nil {
		err = b.serve(ctx, otherServer(at))
	}
	return at, err
}

// siegeLimit is how long all flows may take to go on.
const siegeLimit = 2 * time.Minute

// askedAgain is how long a flow has to answer until it is asked again: the questions are to be no flood.
const askedAgain = 500 * time.Millisecond

// failAll kills the instance that has the flows and returns how long it took until the other one had answered all, in s.
func (b *besieger) failAll(ctx context.Context, at string) (took float64, r agent.CrowdReport, to string, err error) {
	to = otherServer(at)
	if r, err = b.crowd.tell("fresh"); err != nil {
		return 0, r, to, err
	}
	flows := r.Stand[at]
	began := agent.Now()
	if err := b.servers[at].Kill(); err != nil {
		return 0, r, to, err
	}
	b.servers[at] = nil
	for deadline := time.Now().Add(siegeLimit); err == nil; {
		if _, err = b.crowd.tell("leave " + at); err != nil { // those that it has still: what a dead process had read is not answered
			break
		}
		if r, err = b.crowd.until(ctx, "report", askedAgain, func(r agent.CrowdReport) bool { return r.Stand[at] == 0 }); err == nil {
			break
		}
		if ctx.Err() == nil && time.Now().Before(deadline) {
			err = nil
		}
	}
	if err == nil && flows > 0 && r.LastMove <= began {
		err = fmt.Errorf("no flow of %d went from %s to %s: %+v", flows, at, to, r)
	}
	return float64(r.LastMove-began) / 1e9, r, to, err
}

// moveAll moves the client to its other router and returns how long it took until all flows were answered, in s.
func (b *besieger) moveAll(ctx context.Context, flows int) (took float64, r agent.CrowdReport, err error) {
	if err := b.unplug(ctx, moveClient, 100*time.Millisecond); err != nil {
		return 0, r, err
	}
	if _, err := b.crowd.tell("ask"); err != nil {
		return 0, r, err
	}
	if err := Pause(ctx, between); err != nil {
		return 0, r, err
	}
	at, err := b.plugIn(ctx, moveClient)
	if err != nil {
		return 0, r, err
	}
	r, err = b.crowd.until(ctx, "report", siegeLimit, func(r agent.CrowdReport) bool { return r.Answers >= int64(flows) })
	return float64(r.Last-at) / 1e9, r, err
}

// nobody is a MAC address that no port has: frames to it cost their sender what others do.
var nobody = net.HardwareAddr{2, 0, 0, 0, 0xde, 0xad}

// storm begins a flood; aside: of frames that nobody takes.
func (b *besieger) storm(kind string, aside bool) (*running, error) {
	x := b.Plan().Node("x1").Ports[0]
	router := nobody
	if !aside {
		err := b.In("ra", func() error {
			dev, err := net.InterfaceByName(x.Peer.Dev)
			if err == nil {
				router = dev.HardwareAddr
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if aside && kind == "hello" {
		kind = "probe" // what is for all on a link has no MAC address
	}
	var hosts []string
	id, ok := b.File.Network.Space.ServiceOf(b.to.Addr())
	if !ok {
		return nil, fmt.Errorf("%v is no service's address", b.to)
	}
	for _, n := range failServers {
		h, err := b.Host(context.Background(), n)
		if err != nil {
			return nil, err
		}
		prefix, err := netip.ParsePrefix(h.Locator)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, strconv.FormatUint(uint64(sid.LocatorOf(prefix.Addr())), 16))
	}
	cmd, err := AgentCommand("storm", "--dev", x.Dev, "--router", router.String(), "--kind", kind, "--from", b.File.Network.Space.AS.String(), "--hosts", strings.Join(hosts, ","),
		"--to", b.target, "--ss", strconv.FormatUint(uint64(id.SS), 10), "--suffix", strconv.FormatUint(uint64(id.Suffix), 10), "--rate", strconv.Itoa(b.size.Rate), "--duration", "10m")
	if err != nil {
		return nil, err
	}
	f := &running{cmd: cmd}
	cmd.Stdout = &f.out
	if err := b.Start("x1", cmd); err != nil {
		return nil, err
	}
	time.Sleep(floodLead)
	return f, nil
}

// memory is what the servers, the client and the routers have in maps and daemons, and the machine in TCP.
func (b *besieger) memory(ctx context.Context) (bytes float64, err error) {
	uses, err := b.uses()
	if err == nil {
		bytes, err = tcpSlabs()
	}
	if err != nil {
		return 0, err
	}
	for _, node := range append([]string{"ra", "rb", moveClient}, failServers...) {
		n, err := b.kernelMemory(ctx, node)
		if err != nil {
			return 0, err
		}
		bytes += uses[node].bytes + n
	}
	return bytes, nil
}
