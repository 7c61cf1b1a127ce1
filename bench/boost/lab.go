package boost

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/agents"
	"scaffold.dev/scaffold/internal/lab/file"
)

// A Lab is a lab of the boost benchmark, with the parts that are measured in it.
type Lab struct {
	File   string
	parts  []part
	before func(*rig, context.Context) error // what the lab lacks before agents begin; nil: nothing
}

// A part is a group of rows.
type part struct {
	name string
	core bool // Options.Quick has it, too
	do   func(*rig, context.Context) error
}

// Labs are four: two sites with a long path between their routers, whose queue is one product of rate and round trip; the
// same with cables in place of the path, for what agents cost; with two paths; and with two agents at the server's site.
func Labs() []Lab {
	return []Lab{
		{File: strings.Replace(longPathLab, "PATH", "{ends: [x, y], delay: 25ms, rate: 500Mbit, queue: 3125KB, seed: 1}", 1), parts: []part{
			{"loss", true, (*rig).losses},
			{"share", true, (*rig).shares},
			{"worker", true, (*rig).workers},
			{"first", true, (*rig).firstBytes},
			{"mptcp", false, (*rig).multipath},
			{"cubic", false, (*rig).cubicOnly},
			{"policer", false, (*rig).policer},
			{"fat", false, (*rig).fat},
		}},
		{File: strings.Replace(longPathLab, "PATH", "[x, y]", 1), parts: []part{
			{"cpu", true, (*rig).costs},
			{"idle", true, (*rig).idle},
			{"crowd", false, (*rig).idleCrowd},
			{"short", false, (*rig).shorts},
		}},
		{File: twoPathsLab, parts: []part{{"paths", false, (*rig).paths}}, before: (*rig).twoPaths},
		{File: cutLab, parts: []part{{"cut", false, (*rig).cutOff}}, before: (*rig).spareAgent},
	}
}

const longPathLab = `
name: benchboost
nodes:
  c1: host
  x: {kind: plain}
  y: {kind: plain}
  s1: host
links:
  - [c1, x]
  - PATH
  - [y, s1]
`

// Parts are the names of all parts, for Options.Only.
func Parts() (names []string) {
	for _, l := range Labs() {
		for _, p := range l.parts {
			names = append(names, p.name)
		}
	}
	return names
}

// Options say what is measured, and for how long.
type Options struct {
	Each  time.Duration // of one stream
	Runs  int           // turns
	Quick bool          // one run, and the core of the rows
	Only  []string      // parts; nil for all
	Log   func(format string, args ...any)
}

// has reports whether a part is asked for: by its name, also one that Quick leaves out.
func (o *Options) has(p part) bool {
	if len(o.Only) > 0 {
		return slices.Contains(o.Only, p.name)
	}
	return p.core || !o.Quick
}

// In reports whether anything is to be measured in a lab.
func (o *Options) In(l Lab) bool { return slices.ContainsFunc(l.parts, o.has) }

// Ports of the server: connections to the first two are boosted, those to the others pass. iperf3 is at those of its name,
// this process at the others.
const (
	ownBoosted   = 5203
	iperfBoosted = 5201
	iperfPlain   = 5202
	ownPlain     = 5204
)

// settle is how long a stream runs before it is measured: until a window has grown.
const settle = 2 * time.Second

// Measure measures in a lab of that kind what is asked for, and adds it to the report.
func (of Lab) Measure(ctx context.Context, l *lab.Lab, opt Options, rep *bench.Report) error {
	b := &rig{lab: l, opt: opt, rep: rep, near: agents.Site{Agent: "x", Host: "c1"}, far: agents.Site{Agent: "y", Host: "s1"}}
	if of.before != nil {
		if err := of.before(b, ctx); err != nil {
			return err
		}
	}
	if err := b.begin(ctx); err != nil {
		return err
	}
	defer b.end()
	for _, p := range of.parts {
		if !opt.has(p) {
			continue
		}
		opt.Log("boost: %s", p.name)
		began := time.Now()
		if err := p.do(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		b.note("%s took %v", p.name, time.Since(began).Round(time.Second))
	}
	return nil
}

type rig struct {
	lab    *lab.Lab
	opt    Options
	rep    *bench.Report
	agents *agents.Pair
	near   agents.Site // of agents
	far    agents.Site
	others []*exec.Cmd
}

func (b *rig) add(rows ...bench.Row) { b.rep.Rows = append(b.rep.Rows, rows...) }

func (b *rig) note(format string, args ...any) {
	b.rep.Notes = append(b.rep.Notes, fmt.Sprintf(format, args...))
}

func (b *rig) runs() int {
	if b.opt.Quick {
		return 1
	}
	return b.opt.Runs
}

// carries is what a link of 500 Mbit/s carries of TCP's payload over IPv4 in Ethernet frames of 1514 bytes, in bits a
// second: 1448 bytes of them with timestamps.
const carries = 500e6 * 1448 / 1514

// link changes the path, as a line of a timeline does.
func (b *rig) link(ctx context.Context, text string) error {
	return b.act(ctx, "link "+text)
}

// act does a line of a timeline.
func (b *rig) act(ctx context.Context, line string) error {
	a, err := file.ParseAction(line)
	if err == nil {
		err = b.lab.Do(ctx, a)
	}
	return err
}

// loss is that of the path from now on, towards the server.
func (b *rig) loss(ctx context.Context, rate string) error {
	return b.link(ctx, "x->y loss "+rate)
}

// iperf is that many flows of iperf3 together, in bits a second.
func (b *rig) iperf(ctx context.Context, control string, port, flows int, settle, d time.Duration) (float64, error) {
	to := agents.Address(b.lab, "s1").Addr().String()
	return agents.Iperf(ctx, b.lab, "c1", "-c", to, "-p", fmt.Sprint(port), "-C", control, "-P", fmt.Sprint(flows),
		"-t", fmt.Sprint(d.Seconds()), "-O", fmt.Sprint(settle.Seconds()))
}

// raw is flows that pass the agents.
func (b *rig) raw(control string, flows int) *contender {
	return &contender{name: flowsOf(control, flows), run: func(ctx context.Context) (float64, error) {
		return b.iperf(ctx, control, iperfPlain, flows, settle, b.opt.Each)
	}}
}

// boosted is one connection with CUBIC at the hosts, over the agents.
func (b *rig) boosted() *contender {
	return &contender{name: "boosted", run: func(ctx context.Context) (float64, error) {
		return b.iperf(ctx, "cubic", iperfBoosted, 1, settle, b.opt.Each)
	}}
}

func flowsOf(control string, flows int) string {
	if flows == 1 {
		return "one " + strings.ToUpper(control) + " connection"
	}
	return fmt.Sprintf("%d %s flows", flows, strings.ToUpper(control))
}

// begin starts servers and agents, and waits until connections are carried.
func (b *rig) begin(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			b.end()
		}
	}()
	for _, port := range []int{iperfBoosted, iperfPlain} {
		cmd, err := b.lab.Command(ctx, "iperf3", "-s", "-p", fmt.Sprint(port))
		if err == nil {
			err = b.lab.Start("s1", cmd)
		}
		if err != nil {
			return err
		}
		b.others = append(b.others, cmd)
	}
	b.agents, err = agents.Start(ctx, b.lab, b.near, b.far, ownBoosted, iperfBoosted)
	return err
}

// with has agents run with further lines in their files while f does, and without them again after it.
func (b *rig) with(ctx context.Context, lines string, f func() error) error {
	err := b.agents.RestartWith(ctx, lines)
	if err == nil {
		err = f()
	}
	if ctx.Err() != nil {
		return errors.Join(err, ctx.Err()) // they end as they are
	}
	return errors.Join(err, b.agents.RestartWith(ctx, ""))
}

// end ends agents, which leave nothing, and servers.
func (b *rig) end() {
	if b.agents != nil {
		b.agents.End()
	}
	for _, cmd := range b.others {
		cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // killed
	}
}
