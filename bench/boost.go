package bench

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/agents"
	"scaffold.dev/scaffold/internal/lab/file"
)

// BoostLab is the lab of the boost benchmark: two sites, and a long path between their routers. The queue is one product
// of rate and round trip.
const BoostLab = `
name: benchboost
nodes:
  c1: host
  x: {kind: plain}
  y: {kind: plain}
  s1: host
links:
  - [c1, x]
  - {ends: [x, y], delay: 25ms, rate: 500Mbit, queue: 3125KB, seed: 1}
  - [y, s1]
`

// Ports of the server: connections to the first two are boosted, those to the third pass. iperf3 is at the first and the
// third.
const (
	boostedPort = 5201
	steadyPort  = 5203
	plainPort   = 5202
)

// boostSettle is how long a stream runs before it is measured: until a window has grown.
const boostSettle = 2 * time.Second

// Boost measures what one connection of iperf3 carries over the path, d long each time: by itself with CUBIC and with
// BBR, and with CUBIC over two agents, in turns, at several rates of loss from the client's site to the server's.
func Boost(ctx context.Context, l *lab.Lab, d time.Duration, runs int) (rep Report, err error) {
	b := &boostBench{lab: l, d: d}
	if err := b.begin(ctx); err != nil {
		return rep, err
	}
	defer b.end()
	for _, loss := range []string{"0%", "0.01%", "0.1%", "1%"} {
		if err := b.at(ctx, loss, runs, &rep); err != nil {
			return rep, err
		}
	}
	if err := b.shares(ctx, runs, &rep); err != nil {
		return rep, err
	}
	return rep, b.workers(ctx, runs, &rep)
}

type boostBench struct {
	lab    *lab.Lab
	d      time.Duration
	agents *agents.Pair
	others []*exec.Cmd
}

// carries is what a link of 500 Mbit/s carries of TCP's payload over IPv4 in Ethernet frames of 1514 bytes, in bits a
// second: 1448 bytes of them with timestamps.
const carries = 500e6 * 1448 / 1514

// loss is that of the path from now on, towards the server.
func (b *boostBench) loss(ctx context.Context, rate string) error {
	a, err := file.ParseAction("link x->y loss " + rate)
	if err == nil {
		err = b.lab.Do(ctx, a)
	}
	return err
}

func (b *boostBench) at(ctx context.Context, loss string, runs int, rep *Report) error {
	if err := b.loss(ctx, loss); err != nil {
		return err
	}
	kinds := []struct {
		name, control string
		port          int
		rates         []float64
	}{{"CUBIC", "cubic", plainPort, nil}, {"BBR", "bbr", plainPort, nil}, {"boosted", "cubic", boostedPort, nil}}
	var queue []float64
	for range runs {
		for i := range kinds {
			looking, end := context.WithCancel(ctx)
			looked := make(chan []float64, 1)
			if kinds[i].port == boostedPort {
				go func() { looked <- b.queue(looking) }()
			} else {
				looked <- nil
			}
			rate, err := b.stream(ctx, kinds[i].control, kinds[i].port)
			end()
			queue = append(queue, <-looked...)
			if err != nil {
				return fmt.Errorf("%s at %s loss: %w", kinds[i].name, loss, err)
			}
			kinds[i].rates = append(kinds[i].rates, rate)
		}
	}
	var of, ratio, bbr []float64
	for i, rate := range kinds[2].rates {
		of = append(of, rate/carries)
		ratio = append(ratio, rate/kinds[0].rates[i])
		bbr = append(bbr, rate/kinds[1].rates[i])
	}
	aim := ""
	if loss == "0.1%" {
		aim = ">= 38"
	}
	rep.Rows = append(rep.Rows,
		NewRow("boosted, "+loss+" loss: goodput, of what the link carries", "ratio", ">= 0.98", fmt.Sprintf("%.0f Mbit/s", carries/1e6), of),
		NewRow("boosted, "+loss+" loss: goodput, of one CUBIC connection's", "ratio", aim, fmt.Sprintf("%.3g Mbit/s", Quantile(kinds[0].rates, 0.5)/1e6), ratio),
		NewRow("boosted, "+loss+" loss: goodput, of one BBR connection's", "ratio", "", fmt.Sprintf("%.3g Mbit/s", Quantile(kinds[1].rates, 0.5)/1e6), bbr),
		NewRow("boosted, "+loss+" loss: standing queue between the agents", "ms", "<= 15", "", queue))
	return nil
}

// stream is one connection of iperf3, in bits a second.
func (b *boostBench) stream(ctx context.Context, control string, port int) (float64, error) {
	to := agents.Address(b.lab, "s1").Addr().String()
	return agents.Iperf(ctx, b.lab, "c1", "-c", to, "-p", fmt.Sprint(port), "-C", control,
		"-t", fmt.Sprint(b.d.Seconds()), "-O", fmt.Sprint(boostSettle.Seconds()))
}

// begin starts servers and agents, and waits until connections are carried.
func (b *boostBench) begin(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			b.end()
		}
	}()
	for _, port := range []int{boostedPort, plainPort} {
		cmd, err := b.lab.Command(ctx, "iperf3", "-s", "-p", fmt.Sprint(port))
		if err == nil {
			err = b.lab.Start("s1", cmd)
		}
		if err != nil {
			return err
		}
		b.others = append(b.others, cmd)
	}
	b.agents, err = agents.Start(ctx, b.lab, agents.Site{Agent: "x", Host: "c1"}, agents.Site{Agent: "y", Host: "s1"}, steadyPort, boostedPort)
	return err
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
