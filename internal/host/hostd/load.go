package hostd

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/host/sweep"
)

// A loadMeter remembers what the CPU time counters were.
type loadMeter struct {
	busy, total uint64
	flows       uint32
}

// sweep looks after the edge's flows from now on.
func (d *daemon) sweep(edge *host.Edge) (*sweep.Sweeper, error) {
	return sweep.Start(edge, sweep.Config{
		Log:     d.log,
		Counted: func(ctx context.Context, c host.Census) { d.postUntil(ctx, func() { d.reportLoad(c) }) },
		Full:    func(ctx context.Context, text string) { d.postUntil(ctx, func() { d.report("flow.full", text, nil) }) },
	})
}

// reportLoad tells the controller how busy the host and each of its instances are.
func (d *daemon) reportLoad(c host.Census) {
	d.load.flows = uint32(c.Flows)
	l := &apiv1.Load{Flows: d.load.flows, Cpu: d.load.cpu(), NowUnixMs: time.Now().UnixMilli(), Triples: d.serving.Load(c.Serving)}
	d.control.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: l}})
}

// cpu is the busy share of all cores since the last call, 0 to 1.
func (m *loadMeter) cpu() float64 {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	busy, total := cpuTimes(line)
	share := 0.0
	if m.total != 0 && total > m.total && busy >= m.busy {
		share = float64(busy-m.busy) / float64(total-m.total)
	}
	m.busy, m.total = busy, total
	return share
}

// cpuTimes reads the first line of /proc/stat: user nice system idle iowait irq softirq steal.
func cpuTimes(line string) (busy, total uint64) {
	fields := strings.Fields(line)
	for i, f := range fields {
		var n uint64
		if i == 0 || i > 8 {
			continue // the label; guest times are in user already
		}
		fmt.Sscan(f, &n) //nolint:errcheck // /proc/stat has numbers
		total += n
		if i != 4 && i != 5 {
			busy += n
		}
	}
	return busy, total
}
