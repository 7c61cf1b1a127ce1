package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/agents"
	"scaffold.dev/scaffold/internal/lab/file"
)

// A BoostLab is a lab of the boost benchmark, with the parts that are measured in it.
type BoostLab struct {
	File   string
	parts  []boostPart
	before func(*boostBench, context.Context) error // what the lab lacks before agents begin; nil: nothing
}

// A boostPart is a group of rows.
type boostPart struct {
	name string
	core bool // BoostOptions.Quick has it, too
	do   func(*boostBench, context.Context) error
}

// BoostLabs are four: two sites with a long path between their routers, whose queue is one product of rate and round trip; the
// same with cables in place of the path, for what agents cost; with two paths; and with two agents at the server's site.
func BoostLabs() []BoostLab {
	return []BoostLab{
		{File: strings.Replace(boostLab, "PATH", "{ends: [x, y], delay: 25ms, rate: 500Mbit, queue: 3125KB, seed: 1}", 1), parts: []boostPart{
			{"loss", true, (*boostBench).losses},
			{"share", true, (*boostBench).shares},
			{"worker", true, (*boostBench).workers},
			{"first", true, (*boostBench).firstBytes},
			{"mptcp", false, (*boostBench).multipath},
			{"cubic", false, (*boostBench).cubicOnly},
			{"policer", false, (*boostBench).policer},
			{"fat", false, (*boostBench).fat},
		}},
		{File: strings.Replace(boostLab, "PATH", "[x, y]", 1), parts: []boostPart{
			{"cpu", true, (*boostBench).costs},
			{"idle", true, (*boostBench).idle},
			{"crowd", false, (*boostBench).idleCrowd},
			{"short", false, (*boostBench).shorts},
		}},
		{File: twoPathsLab, parts: []boostPart{{"paths", false, (*boostBench).paths}}, before: (*boostBench).twoPaths},
		{File: cutLab, parts: []boostPart{{"cut", false, (*boostBench).cutOff}}, before: (*boostBench).spareAgent},
	}
}

const boostLab = `
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

// BoostParts are the names of all parts, for BoostOptions.Only.
func BoostParts() (names []string) {
	for _, l := range BoostLabs() {
		for _, p := range l.parts {
			names = append(names, p.name)
		}
	}
	return names
}

// BoostOptions say what is measured, and for how long.
type BoostOptions struct {
	Each  time.Duration // of one stream
	Runs  int           // turns
	Quick bool          // one run, and the core of the rows
	Only  []string      // parts; nil for all
	Log   func(format string, args ...any)
}

// has reports whether a part is asked for: by its name, also one that Quick leaves out.
func (o *BoostOptions) has(p boostPart) bool {
	if len(o.Only) > 0 {
		return slices.Contains(o.Only, p.name)
	}
	return p.core || !o.Quick
}

// In reports whether anything is to be measured in a lab.
func (o *BoostOptions) In(l BoostLab) bool { return slices.ContainsFunc(l.parts, o.has) }

// Ports of the server: connections to the first two are boosted, those to the others pass. iperf3 is at those of its name,
// this process at the others.
const (
	ownBoosted   = 5203
	iperfBoosted = 5201
	iperfPlain   = 5202
	ownPlain     = 5204
)

// boostSettle is how long a stream runs before it is measured: until a window has grown.
const boostSettle = 2 * time.Second

// Measure measures in a lab of that kind what is asked for, and adds it to the report.
func (of BoostLab) Measure(ctx context.Context, l *lab.Lab, opt BoostOptions, rep *Report) error {
	b := &boostBench{lab: l, opt: opt, rep: rep, near: agents.Site{Agent: "x", Host: "c1"}, far: agents.Site{Agent: "y", Host: "s1"}}
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

type boostBench struct {
	lab    *lab.Lab
	opt    BoostOptions
	rep    *Report
	agents *agents.Pair
	near   agents.Site // of agents
	far    agents.Site
	others []*exec.Cmd
}

func (b *boostBench) add(rows ...Row) { b.rep.Rows = append(b.rep.Rows, rows...) }

func (b *boostBench) note(format string, args ...any) {
	b.rep.Notes = append(b.rep.Notes, fmt.Sprintf(format, args...))
}

func (b *boostBench) runs() int {
	if b.opt.Quick {
		return 1
	}
	return b.opt.Runs
}

// carries is what a link of 500 Mbit/s carries of TCP's payload over IPv4 in Ethernet frames of 1514 bytes, in bits a
// second: 1448 bytes of them with timestamps.
const carries = 500e6 * 1448 / 1514

// link changes the path, as a line of a timeline does.
func (b *boostBench) link(ctx context.Context, text string) error {
	return b.act(ctx, "link "+text)
}

// act does a line of a timeline.
func (b *boostBench) act(ctx context.Context, line string) error {
	a, err := file.ParseAction(line)
	if err == nil {
		err = b.lab.Do(ctx, a)
	}
	return err
}

// loss is that of the path from now on, towards the server.
func (b *boostBench) loss(ctx context.Context, rate string) error {
	return b.link(ctx, "x->y loss "+rate)
}

// iperf is that many flows of iperf3 together, in bits a second.
func (b *boostBench) iperf(ctx context.Context, control string, port, flows int, settle, d time.Duration) (float64, error) {
	to := agents.Address(b.lab, "s1").Addr().String()
	return agents.Iperf(ctx, b.lab, "c1", "-c", to, "-p", fmt.Sprint(port), "-C", control, "-P", fmt.Sprint(flows),
		"-t", fmt.Sprint(d.Seconds()), "-O", fmt.Sprint(settle.Seconds()))
}

// raw is flows that pass the agents.
func (b *boostBench) raw(control string, flows int) *contender {
	return &contender{name: flowsOf(control, flows), run: func(ctx context.Context) (float64, error) {
		return b.iperf(ctx, control, iperfPlain, flows, boostSettle, b.opt.Each)
	}}
}

// boosted is one connection with CUBIC at the hosts, over the agents.
func (b *boostBench) boosted() *contender {
	return &contender{name: "boosted", run: func(ctx context.Context) (float64, error) {
		return b.iperf(ctx, "cubic", iperfBoosted, 1, boostSettle, b.opt.Each)
	}}
}

func flowsOf(control string, flows int) string {
	if flows == 1 {
		return "one " + strings.ToUpper(control) + " connection"
	}
	return fmt.Sprintf("%d %s flows", flows, strings.ToUpper(control))
}

// begin starts servers and agents, and waits until connections are carried.
func (b *boostBench) begin(ctx context.Context) (err error) {
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
func (b *boostBench) with(ctx context.Context, lines string, f func() error) error {
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
func (b *boostBench) end() {
	if b.agents != nil {
		b.agents.End()
	}
	for _, cmd := range b.others {
		cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // killed
	}
}
