package hostd

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
)

// A loadMeter remembers what the CPU time counters were.
type loadMeter struct {
	busy, total uint64
	flows       uint32
}

// reportLoad tells the controller how busy the host and each of its instances are.
func (d *daemon) reportLoad(c host.Census) {
	d.load.flows = uint32(c.Flows)
	l := &apiv1.Load{Flows: d.load.flows, Cpu: d.load.cpu()}
	for t, i := range d.serving.instances {
		i.flows = c.Serving[t]
		l.Triples = append(l.Triples, &apiv1.TripleLoad{
			Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port),
			Flows: i.flows, AcceptQueue: i.waiting, Backlog: i.backlog,
		})
	}
	d.control.send(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: l}})
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
		fmt.Sscan(f, &n)
		total += n
		if i != 4 && i != 5 {
			busy += n
		}
	}
	return busy, total
}
