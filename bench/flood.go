package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/internal/lab/plot"
)

// FloodLab is the lab of the flood benchmark: a client, a server and who floods it, a member, or somebody in the place of a
// router: at a host's port packets are from that host.
const FloodLab = `
name: benchflood
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  c1: host
  s1: host
  x1: host
  rx: router
links:
  - {ends: [c1, r1], delay: 0s}
  - [s1, r1]
  - [x1, r1]
  - [rx, r1]
services:
  bench: {weight: 100}
`

// A FloodSize is how much is sent.
type FloodSize struct {
	SYNs, Connects int // a second
	Length         time.Duration
}

// A flooding is one kind of flood.
type flooding struct {
	name  string
	short string // for the figure
	from  netip.Prefix
	to    netip.AddrPort
	delay string // of the client's link
	by    string // the node that sends
}

// Flood sends SYNs at a service through its router, from addresses of several kinds, and measures how many of a
// client's connections are served meanwhile, and what the router's and the server's kernel keep.
func Flood(ctx context.Context, r *Rig, size FloodSize) (rep Report, err error) {
	to, err := serviceTarget(ctx, r, "bench")
	if err != nil {
		return rep, err
	}
	server, err := serve(r, "s1", to)
	if err != nil {
		return rep, err
	}
	defer server.Kill() //nolint:errcheck // it serves nobody else
	if err := awaitServing(ctx, r, "bench", 1); err != nil {
		return rep, err
	}
	b := &floodBench{rig: r, size: size, to: to}
	kinds, err := b.kinds(ctx)
	if err != nil {
		return rep, err
	}
	for _, k := range kinds {
		if err := b.measure(ctx, k); err != nil {
			return rep, fmt.Errorf("%s: %w", k.name, err)
		}
	}
	b.rep.Figure = plot.Figure{
		Title: fmt.Sprintf("Connections in a flood of %d SYNs a second", b.size.SYNs), Axis: "flood", Steps: b.steps, End: float64(len(b.steps) - 1),
		Panels: []plot.Panel{{Label: "served, part", Lines: b.lines[:2]}, {Label: "one, p50, ms", Lines: b.lines[2:], Log: true}},
	}
	b.rep.Notes = append(b.rep.Notes,
		fmt.Sprintf("%d connections a second are asked for, each with one question, for %v without a flood and %v with it; %d SYNs a second by sendmmsg on a packet socket", size.Connects, size.Length, size.Length, size.SYNs),
		"client, server, router and flood share this machine's processors: the flood's sender and the kernel's handling of it take theirs from both")
	return b.rep, nil
}

type floodBench struct {
	rig  *Rig
	size FloodSize
	to   string
	rep  Report

	steps []string
	lines [4]plot.Line // served in calm, in the flood; time in calm, in the flood
}

// slow is a delay of the client's link at which a round trip takes 100 ms.
const slow = "50ms"

func (b *floodBench) kinds(ctx context.Context) ([]flooding, error) {
	to, err := netip.ParseAddrPort(b.to)
	if err != nil {
		return nil, err
	}
	h, err := b.rig.Host(ctx, "x1")
	if err != nil {
		return nil, err
	}
	own, err := netip.ParsePrefix(h.Locator)
	if err != nil {
		return nil, err
	}
	as := b.rig.File.Network.Space.AS
	unknown := netip.AddrPortFrom(to.Addr().Next(), to.Port())
	return []flooding{
		{"router, an unknown service, spoofed", "router", as, unknown, "0s", "rx"},
		{"server, spoofed addresses of the network", "spoofed", as, to, "0s", "rx"},
		{"server, addresses of a member", "a member's", own, to, "0s", "x1"},
		{"server, addresses of attackers", "attackers'", netip.MustParsePrefix("2001:db8::/32"), to, "0s", "rx"},
		{"server, spoofed, client 100 ms away", "client far", as, to, slow, "rx"},
	}, nil
}

func (b *floodBench) measure(ctx context.Context, k flooding) error {
	if err := b.rig.Act(ctx, "link c1 r1 delay %s", k.delay); err != nil {
		return err
	}
	calm, err := b.paced(ctx)
	if err != nil {
		return err
	}
	before, err := b.memory(ctx)
	if err != nil {
		return err
	}
	flood, err := b.flood(k)
	if err != nil {
		return err
	}
	under, err := b.paced(ctx)
	if err != nil {
		return err
	}
	during, err := b.memory(ctx)
	if err != nil {
		return err
	}
	sent, err := flood.end()
	if err != nil {
		return err
	}
	share := float64(under.Answered) / float64(max(under.Asked, 1)) / (float64(max(calm.Answered, 1)) / float64(max(calm.Asked, 1)))
	b.draw(k, calm, under)
	add := func(what, unit, aim, peer string, q float64, samples ...float64) {
		b.rep.Rows = append(b.rep.Rows, QuantileRow(k.name+": "+what, unit, aim, peer, samples, q))
	}
	add("connections served, of those without", "ratio", ">= 0.9", fmt.Sprintf("no flood: %d of %d", calm.Answered, calm.Asked), 0.5, share)
	add("one connection, p50", "ms", "", fmt.Sprintf("no flood: %.3g ms", Quantile(calm.Took, 0.5)), 0.5, under.Took...)
	add("one connection, p99", "ms", "", fmt.Sprintf("no flood: %.3g ms", Quantile(calm.Took, 0.99)), 0.99, under.Took...)
	add("SYNs", "1/s", "", "", 0.5, sent.PerSecond())
	add("memory more than without: kernel's maps, daemons, TCP", "MB", "<= 8", "", 0.5, (during-before)/1e6)
	if rate := sent.PerSecond(); rate < 0.95*float64(b.size.SYNs) {
		b.rep.Notes = append(b.rep.Notes, fmt.Sprintf("%s: of %d SYNs a second the sender got %.0f out: it shares its processor with what the kernel does with them", k.name, b.size.SYNs, rate))
	}
	if under.Error != "" {
		b.rep.Notes = append(b.rep.Notes, k.name+": the first that was not served: "+under.Error)
	}
	return nil
}

func (b *floodBench) draw(k flooding, calm, under agent.PacedResult) {
	at := float64(len(b.steps))
	b.steps = append(b.steps, k.short)
	served := func(r agent.PacedResult) float64 { return float64(r.Answered) / float64(max(r.Asked, 1)) }
	for i, v := range []float64{served(calm), served(under), Quantile(calm.Took, 0.5), Quantile(under.Took, 0.5)} {
		b.lines[i].Name = []string{"no flood", "flood"}[i%2]
		b.lines[i].Points = append(b.lines[i].Points, plot.Point{At: at, Value: v})
	}
}

// A running is a flood under way.
type running struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

func (b *floodBench) flood(k flooding) (*running, error) {
	x := b.rig.Plan().Node(k.by).Ports[0]
	var router net.HardwareAddr // of the port
	err := b.rig.In("r1", func() error {
		dev, err := net.InterfaceByName(x.Peer.Dev)
		if err == nil {
			router = dev.HardwareAddr
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	cmd, err := AgentCommand("flood", "--dev", x.Dev, "--router", router.String(), "--from", k.from.String(), "--to", k.to.String(),
		"--rate", strconv.Itoa(b.size.SYNs), "--duration", "10m")
	if err != nil {
		return nil, err
	}
	f := &running{cmd: cmd}
	cmd.Stdout = &f.out
	if err := b.rig.Start(k.by, cmd); err != nil {
		return nil, err
	}
	time.Sleep(floodLead)
	return f, nil
}

// floodLead is how long a flood runs before anything is measured: until tables that it fills are full.
const floodLead = 2 * time.Second

// end stops the flood and says how much it was.
func (f *running) end() (r agent.Result, err error) {
	f.cmd.Process.Signal(syscall.SIGTERM) // it may have ended; who starts a bench in the background of a shell may ignore SIGINT
	if err := f.cmd.Wait(); err != nil {
		return r, fmt.Errorf("the flood: %w", err)
	}
	return r, json.Unmarshal(f.out.Bytes(), &r)
}

func (b *floodBench) paced(ctx context.Context) (agent.PacedResult, error) {
	return paced(ctx, b.rig, b.to, b.size.Connects, b.size.Length, nil)
}

// memory is what router and server have in maps and daemons, and the machine in TCP.
func (b *floodBench) memory(ctx context.Context) (bytes float64, err error) {
	uses, err := b.rig.uses()
	if err == nil {
		bytes, err = tcpSlabs()
	}
	if err != nil {
		return 0, err
	}
	for _, node := range []string{"r1", "s1"} {
		n, err := b.rig.kernelMemory(ctx, node)
		if err != nil {
			return 0, err
		}
		bytes += uses[node].bytes + n
	}
	return bytes, nil
}
