package boost

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/process"
	"scaffold.dev/scaffold/bench/sos"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/agents"
)

// sosPairsMost is how many pairs of agents there are.
const sosPairsMost = 5

var sosPairs = SosExperiment{
	About: sos.Result{
		Name: "sos_pairs", Title: "One to five pairs of agents", Thesis: "table 3.4.1, figures 3.4.5 and 3.4.6",
		Setting: "Up to five pairs of agents, each with a client and a server of its own and one stream of iperf3, over one path of 500 Mbit/s and 50 ms. Each agent may have so much of a processor that a pair alone carries about a third of the path. Pairs know nothing of each other. The last column is what so many pairs carry of the most that fewer did.",
		Lacks:   "The thesis' pairs are machines of 20 cores, and carry more until their link of 27 Gbit/s is full; with five they carry less than with four. Here pairs share two processors with hosts and path; a quota stands for a machine's limit. What is to be seen is that the sum grows until the path is full, and does not fall then.",
	},
	Lab: sosPairsLab(),
	run: (*sosRun).pairs,
}

// sosPairsThesis are the thesis' rates, in Gbit/s, and what senders and receivers take of a processor, in percent.
var sosPairsThesis = [sosPairsMost][3]float64{{8.69, 264, 247}, {15.25, 507, 460}, {21.45, 605, 586}, {23.22, 687, 608}, {22.21, 703, 640}}

// sosPairsLab is the file of the pairs' lab.
func sosPairsLab() string {
	var nodes, links strings.Builder
	for i := 1; i <= sosPairsMost; i++ {
		fmt.Fprintf(&nodes, "  c%[1]d: host\n  x%[1]d: {kind: plain}\n  y%[1]d: {kind: plain}\n  s%[1]d: host\n", i)
		fmt.Fprintf(&links, "  - [c%[1]d, x%[1]d]\n  - [x%[1]d, l]\n  - [r, y%[1]d]\n  - [y%[1]d, s%[1]d]\n", i)
	}
	return "name: sospairs\nnodes:\n  l: {kind: plain}\n  r: {kind: plain}\n" + nodes.String() +
		"links:\n  - {ends: [l, r], delay: 25ms, rate: 500Mbit, queue: 3125KB, seed: 1}\n" + links.String()
}

// sosPart is what a pair gets of the processor time that it takes to fill the path.
const sosPart = 1. / 3

// A sosPair is a pair of agents with its hosts.
type sosPair struct {
	number int
	agents *agents.Pair
	server *exec.Cmd
	quotas []*process.Quota
}

func (p *sosPair) at(kind string) string { return fmt.Sprint(kind, p.number) }

// startPair starts a pair, and iperf3 at its server.
func startPair(ctx context.Context, l *lab.Lab, number int) (*sosPair, error) {
	p := &sosPair{number: number}
	var err error
	p.agents, err = agents.Start(ctx, l, agents.Site{Agent: p.at("x"), Host: p.at("c")}, agents.Site{Agent: p.at("y"), Host: p.at("s")}, iperfBoosted)
	if err != nil {
		return nil, err
	}
	p.server, err = l.Command(ctx, "iperf3", "-s", "-p", fmt.Sprint(iperfBoosted))
	if err == nil {
		err = l.Start(p.at("s"), p.server)
	}
	if err != nil {
		p.server = nil
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

func (p *sosPair) end() (err error) {
	if p.server != nil {
		p.server.Process.Kill()
		p.server.Wait() //nolint:errcheck // killed
	}
	p.agents.End()
	for _, q := range p.quotas {
		err = errors.Join(err, q.End())
	}
	return err
}

// confine gives its agents so much of a processor: the one that sends, and the one that receives, which takes more.
func (p *sosPair) confine(l *lab.Lab, parts [2]float64) error {
	for i, name := range []string{p.at("x"), p.at("y")} {
		q, err := process.NewQuota(l.File.Name+"-"+name, parts[i])
		if err != nil {
			return err
		}
		p.quotas = append(p.quotas, q)
		if err := q.Take(p.agents.Keeper(name)); err != nil {
			return err
		}
	}
	return nil
}

// used is what its agents have had of processors.
func (p *sosPair) used() [2]time.Duration {
	return [2]time.Duration{process.TreeCPU(p.agents.Keeper(p.at("x"))), process.TreeCPU(p.agents.Keeper(p.at("y")))}
}

// pairs finds what one pair takes to fill the path, and measures so many with a part of that.
func (r *sosRun) pairs(ctx context.Context) (err error) {
	most := sosPairsMost
	if r.opt.Quick {
		most = 2
	}
	var all []*sosPair
	defer func() {
		for _, p := range all {
			err = errors.Join(err, p.end())
		}
	}()
	for i := range most {
		p, err := startPair(ctx, r.lab, i+1)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	alone, err := r.together(ctx, all[:1])
	if err != nil {
		return err
	}
	parts := [2]float64{sosPart * alone.percent[0] / 100, sosPart * alone.percent[1] / 100}
	for _, p := range all {
		if err := p.confine(r.lab, parts); err != nil {
			return err
		}
	}
	r.res.Notes = append(r.res.Notes, fmt.Sprintf("A pair without a quota carried %.0f Mbit/s; its agents took %.1f %% and %.1f %% of a processor. Quotas were %.1f %% and %.1f %%.",
		alone.rate/1e6, alone.percent[0], alone.percent[1], 100*parts[0], 100*parts[1]))
	return r.upTo(ctx, all)
}

// upTo measures one pair, two, and so on.
func (r *sosRun) upTo(ctx context.Context, all []*sosPair) error {
	var rates []float64
	for n := range all {
		var rate, near, far []outcome
		for range r.opt.Runs {
			var t together
			o, err := observed(ctx, r.lab, func() (_ float64, err error) {
				t, err = r.together(ctx, all[:n+1])
				return t.rate, err
			})
			if err != nil {
				return err
			}
			rate = append(rate, outcome{o.value / 1e9, o.blame})
			near, far = append(near, outcome{t.percent[0], o.blame}), append(far, outcome{t.percent[1], o.blame})
		}
		of, thesis := fmt.Sprintf("%d", n+1), sosPairsThesis[n]
		r.put(of, "sum", "Gbit/s", thesis[0], rate...)
		r.put(of, "senders' processor", "%", thesis[1], near...)
		r.put(of, "receivers' processor", "%", thesis[2], far...)
		if rates = append(rates, bench.Quantile(values(rate), 0.5)); n > 0 {
			r.put(of, "of the most before", sos.Ratio, kept(sosRates(n+1)), outcome{value: kept(rates)})
		}
	}
	return nil
}

// sosRates are the thesis' rates of up to so many pairs.
func sosRates(n int) (rates []float64) {
	for _, t := range sosPairsThesis[:n] {
		rates = append(rates, t[0])
	}
	return rates
}

// kept is what the last of some rates is of the most before it.
func kept(rates []float64) float64 {
	most := 0.
	for _, rate := range rates[:len(rates)-1] {
		most = max(most, rate)
	}
	if most == 0 {
		return 0
	}
	return rates[len(rates)-1] / most
}

// A together is what pairs carried in sum, and what their agents took of a processor: senders, receivers.
type together struct {
	rate    float64 // bits a second
	percent [2]float64
}

// together has a stream run over each of these pairs.
func (r *sosRun) together(ctx context.Context, pairs []*sosPair) (t together, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	before, began := usedBy(pairs), time.Now()
	for _, p := range pairs {
		all.Go(func() {
			rate, failed := agents.Iperf(ctx, r.lab, p.at("c"), "-c", agents.Address(r.lab, p.at("s")).Addr().String(), "-p", fmt.Sprint(iperfBoosted),
				"-C", "cubic", "-t", fmt.Sprint(r.opt.Each.Seconds()), "-O", fmt.Sprint(settle.Seconds()))
			mu.Lock()
			defer mu.Unlock()
			t.rate += rate
			err = errors.Join(err, failed)
		})
	}
	all.Wait()
	took, after := time.Since(began), usedBy(pairs)
	for i := range t.percent {
		t.percent[i] = percent(after[i]-before[i], took)
	}
	return t, err
}

// usedBy is what senders and receivers among agents have had of processors.
func usedBy(pairs []*sosPair) (sum [2]time.Duration) {
	for _, p := range pairs {
		for i, used := range p.used() {
			sum[i] += used
		}
	}
	return sum
}
