package switchd

import (
	"context"
	"sync"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// sampleFor is how long what ports have counted is good for: all families of one scrape have the same.
const sampleFor = time.Second

// scrapeTime is how long switches may hold up a scrape.
const scrapeTime = 2 * time.Second

// export has the metrics of switches and modules read at each scrape.
func (d *answerer) export(m *obs.Metrics) {
	d.exportSwitches(m)
	d.exportPorts(m)
	d.exportModules(m)
}

func (d *answerer) exportSwitches(m *obs.Metrics) {
	of := []string{"switch"}
	each := func(read func(obs.Add, condition)) func(obs.Add) {
		return func(add obs.Add) {
			for _, c := range d.plane.conditions() {
				read(add, c)
			}
		}
	}
	m.GaugeTable("switch_up", "Whether the switch is connected.", of, each(func(add obs.Add, c condition) { add(truth(c.Up), c.Name) }))
	m.CounterTable("switch_connects_total", "Times that the switch connected.", of, each(func(add obs.Add, c condition) { add(float64(c.Connects), c.Name) }))
	m.CounterTable("switch_errors_total", "Refusals by the switch of what it was told.", of, each(func(add obs.Add, c condition) { add(float64(c.Errors), c.Name) }))
	m.CounterTable("switch_bundles_total", "Changes that were brought into the switch.", of, each(func(add obs.Add, c condition) { add(float64(c.Bundles), c.Name) }))
	m.CounterTable("switch_packets_dropped_total", "Packets that the switch punted and nobody took in time.", of, each(func(add obs.Add, c condition) { add(float64(c.Dropped), c.Name) }))
	m.GaugeTable("switch_reconcile_seconds", "How long it took to bring the switch up to date when it came last.", of, each(func(add obs.Add, c condition) { add(c.Reconciled.Seconds(), c.Name) }))
	m.GaugeTable("switch_entries", "Flows, groups and meters that the switch is to hold for us.", []string{"switch", "kind"}, each(func(add obs.Add, c condition) {
		add(float64(c.Flows), c.Name, "flow")
		add(float64(c.Groups), c.Name, "group")
		add(float64(c.Meters), c.Name, "meter")
	}))
	m.CounterTable("switch_packet_ins_total", "Packets that the switch punted, by whom they were for.", []string{"switch", "owner"}, each(func(add obs.Add, c condition) {
		for by, n := range c.PacketIns {
			add(float64(n), c.Name, d.modules.ownerName(by))
		}
	}))
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (d *answerer) exportModules(m *obs.Metrics) {
	each := func(read func(moduleCounts) float64) func(obs.Add) {
		return func(add obs.Add) {
			for _, c := range d.modules.counts() {
				add(read(c), c.name)
			}
		}
	}
	of := []string{"module"}
	m.CounterTable("module_packets_total", "Packets that the module got.", of, each(func(c moduleCounts) float64 { return float64(c.packets) }))
	m.CounterTable("module_packets_dropped_total", "Packets that the module did not take in time.", of, each(func(c moduleCounts) float64 { return float64(c.dropped) }))
	m.CounterTable("module_reports_refused_total", "Lines for the events that were too many.", of, each(func(c moduleCounts) float64 { return float64(c.reports) }))
	m.GaugeTable("module_stopped", "Whether the module was stopped for what it did.", of, each(func(c moduleCounts) float64 { return truth(c.stopped) }))
}

// A sample is what the ports of all switches have counted.
type sample struct {
	mu    sync.Mutex
	taken time.Time
	ports map[string][]*apiv1.SwitchPort // by switch
}

func (d *answerer) exportPorts(m *obs.Metrics) {
	s := new(sample)
	family := func(name, help string, read func(*apiv1.SwitchPort) (rx, tx uint64)) {
		m.CounterTable(name, help, []string{"switch", "port", "direction"}, func(add obs.Add) {
			for at, ports := range s.fresh(d) {
				for _, p := range ports {
					rx, tx := read(p)
					add(float64(rx), at, p.Name, "rx")
					add(float64(tx), at, p.Name, "tx")
				}
			}
		})
	}
	family("port_packets_total", "Packets of the switch's port.", func(p *apiv1.SwitchPort) (rx, tx uint64) { return p.RxPackets, p.TxPackets })
	family("port_bytes_total", "Bytes of the switch's port.", func(p *apiv1.SwitchPort) (rx, tx uint64) { return p.RxBytes, p.TxBytes })
	family("port_drops_total", "Packets that the switch's port dropped.", func(p *apiv1.SwitchPort) (rx, tx uint64) { return p.RxDropped, p.TxDropped })
	family("port_errors_total", "Damaged packets of the switch's port.", func(p *apiv1.SwitchPort) (rx, tx uint64) { return p.RxErrors, p.TxErrors })
}

// fresh asks all switches at once, unless that was just done. One that does not answer is left out.
func (s *sample) fresh(d *answerer) map[string][]*apiv1.SwitchPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.taken) < sampleFor {
		return s.ports
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	var asking sync.WaitGroup
	var mu sync.Mutex
	ports := make(map[string][]*apiv1.SwitchPort)
	for _, c := range d.plane.conditions() {
		if !c.Up {
			continue
		}
		asking.Go(func() {
			x := new(apiv1.Switch)
			if d.ports(ctx, c, x) == nil {
				mu.Lock()
				defer mu.Unlock()
				ports[c.Name] = x.Ports
			}
		})
	}
	asking.Wait()
	s.ports, s.taken = ports, time.Now()
	return ports
}
