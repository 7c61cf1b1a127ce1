package bench

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/internal/bpf/stats"
)

// A trial is one way of using a path, measured over a service address and over a plain one.
type trial struct {
	name, aim string
	args      []string
	rate      func(agent.Result) float64
}

// serverCPU is the processor of the servers, and of the clients that wait for each answer; a stream's
// client has the other one.
const serverCPU = "1"

var trials = []trial{
	{"one TCP stream", ">= 0.95", []string{"stream", "--cpu", "0"}, agent.Result.GbitPerSecond},
	{"request/response, TCP", ">= 0.95", []string{"rr", "--network", "tcp6", "--cpu", serverCPU}, agent.Result.PerSecond},
	{"request/response, UDP", ">= 0.95", []string{"rr", "--network", "udp6", "--cpu", serverCPU}, agent.Result.PerSecond},
	{"connect + request + close", ">= 0.90", []string{"connect", "--network", "tcp6", "--cpu", serverCPU}, agent.Result.PerSecond},
}

// peerPlain is what the path is compared with.
const peerPlain = "plain IPv6, same hosts and path"

// Path compares a service with plain IPv6 between c1 and s1 over the same routers, in alternating
// pairs of d each.
func Path(ctx context.Context, r *Rig, service string, pairs int, d time.Duration) (Report, error) {
	var rep Report
	ours, err := serviceTarget(ctx, r, service)
	if err != nil {
		return rep, err
	}
	plain, err := plainTarget(ctx, r, "s1")
	if err != nil {
		return rep, err
	}
	for _, addr := range []string{ours, plain} {
		s, err := serve(r, "s1", addr, "--cpu", serverCPU)
		if err != nil {
			return rep, err
		}
		defer s.Kill() //nolint:errcheck // the lab ends with the bench
	}
	if err := awaitServing(ctx, r, service, 1); err != nil {
		return rep, err
	}
	for _, t := range trials {
		rows, err := t.compare(ctx, r, ours, plain, peerPlain, pairs, d)
		if err != nil {
			return rep, err
		}
		rep.Rows = append(rep.Rows, rows...)
	}
	edge, err := edgeCost(ctx, r, ours, pairs, d)
	rep.Rows = append(rep.Rows, edge...)
	rep.Notes = append(rep.Notes,
		fmt.Sprintf("%d alternating pairs of %v each, streams three times as long; ratios are service / plain; a TCP packet of a stream may hold 64 KB", pairs, d),
		"client and server of requests share a processor: on two, the time to wake an idle one hides everything else")
	return rep, err
}

// streamLength is how many times longer a stream is measured: it must outgrow its slow start.
const streamLength = 3

// compare runs one trial; the side that goes first changes with each pair.
func (t trial) compare(ctx context.Context, r *Rig, ours, plain, peer string, pairs int, d time.Duration) ([]Row, error) {
	if t.args[0] == "stream" {
		d *= streamLength
	}
	rates := map[string][]float64{}
	cpu := map[string][]float64{} // busy seconds per operation or Gbit
	for i := range pairs {
		order := []string{ours, plain}
		if i%2 == 1 {
			order = []string{plain, ours}
		}
		for _, to := range order {
			before, err := busyTicks()
			if err != nil {
				return nil, err
			}
			res, err := measure(ctx, r, "c1", append(t.args, "--to", to, "--duration", d.String())...)
			if err != nil {
				return nil, err
			}
			after, err := busyTicks()
			if err != nil {
				return nil, err
			}
			if res.Errors > 0 {
				return nil, fmt.Errorf("%s to %s: %d requests failed", t.name, to, res.Errors)
			}
			rate := t.rate(res)
			rates[to] = append(rates[to], rate)
			cpu[to] = append(cpu[to], float64(after-before)/100/(rate*float64(res.Nanos)/1e9))
		}
	}
	rows := []Row{NewRow(t.name, "ratio", t.aim, peer, Ratios(rates[ours], rates[plain]))}
	if t.args[0] == "stream" {
		rows = append(rows,
			NewRow("CPU-seconds per Gbit", "ratio", "<= 1.10", peer, Ratios(cpu[ours], cpu[plain])),
			NewRow("one TCP stream, as it was", "Gbit/s", "", "", rates[ours]))
		return rows, nil
	}
	return append(rows, NewRow(t.name+", as it was", "1/s", "", "", rates[ours])), nil
}

// edgeCost reads from the kernel's accounting what the host edge costs per packet.
func edgeCost(ctx context.Context, r *Rig, to string, n int, d time.Duration) ([]Row, error) {
	on, err := stats.Enable()
	if err != nil {
		return nil, err
	}
	defer on.Close()
	var rows []Row
	for _, load := range [][]string{{"rr", "--network", "tcp6", "--cpu", serverCPU}, {"stream", "--cpu", "0"}} {
		var samples []float64
		for range n {
			before, err := stats.Read()
			if err != nil {
				return nil, err
			}
			if _, err := measure(ctx, r, "c1", append(load, "--to", to, "--duration", (d/2).String())...); err != nil {
				return nil, err
			}
			after, err := stats.Read()
			if err != nil {
				return nil, err
			}
			samples = append(samples, perRun(before, after, "edge_egress")+perRun(before, after, "edge_ingress"))
		}
		rows = append(rows, NewRow("edge per packet, egress + ingress, "+load[0], "ns", "<= 500", "kernel's accounting", samples))
	}
	return rows, nil
}

func perRun(before, after map[string]stats.Usage, name string) float64 {
	return after[name].Sub(before[name]).PerRun()
}

// awaitServing waits until the controller counts n serving instances (per protocol and port).
func awaitServing(ctx context.Context, r *Rig, service string, n int) error {
	for deadline := time.Now().Add(10 * time.Second); ; {
		s, err := r.Service(ctx, service) // which fails while a controller that was started is on its way
		serving := 0
		for _, i := range s.GetInstances() {
			if i.State == "serving" {
				serving++
			}
		}
		switch {
		case serving >= n:
			return nil
		case time.Now().After(deadline) && err != nil:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("service %s has %d serving instances, want %d: %v", service, serving, n, s.Instances)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
