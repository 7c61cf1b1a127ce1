package controld

import (
	"context"
	"math"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/controller/controld/boost"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// figuresFor is how long figures are good for, so that one scrape asks the loop once; figuresWait bounds the asking.
const (
	figuresFor  = 100 * time.Millisecond
	figuresWait = 2 * time.Second
)

// figures are what scrapes read of the network's state.
type figures struct {
	hosts                                  map[string]int // by state
	routers, services, unserved, instances int
	pending                                int
	controllers                            map[string]int // by state
	generation                             uint64
	boost                                  boost.Figures
}

// A census has the figures of a moment ago.
type census struct {
	mu    sync.Mutex
	taken time.Time
	last  *figures // nil: nobody answered
}

// figures asks the loop, or says what it said a moment ago; nil while it does not answer.
func (n *network) figures() *figures {
	c := &n.census
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.taken) < figuresFor {
		return c.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), figuresWait)
	defer cancel()
	var f *figures
	if n.ask(ctx, func() { f = n.count() }) != nil {
		f = nil
	}
	c.taken, c.last = time.Now(), f
	return f
}

func (n *network) count() *figures {
	f := &figures{hosts: map[string]int{"up": 0, "joining": 0, "suspect": 0, "gone": 0}, generation: n.pushes.Generation()}
	f.services, f.instances = n.plan.Count()
	f.unserved = n.unserved()
	f.pending = n.saver.Waiting()
	f.routers = n.routers.Connected()
	f.boost = n.boost.Figures()
	if running, gone, known := n.controllers.Count(); known {
		f.controllers = map[string]int{"running": running, "gone": gone}
	}
	for _, h := range n.hosts {
		if h.Here {
			f.hosts[n.places.Text(&h.Host)]++
		}
	}
	return f
}

// export makes metrics of the figures.
func (n *network) export(m *obs.Metrics) {
	gauge := func(name, help string, of func(*figures) float64) {
		m.GaugeFunc(name, help, func() float64 {
			if f := n.figures(); f != nil {
				return of(f)
			}
			return math.NaN()
		})
	}
	gauge("routers", "Routers that are connected.", func(f *figures) float64 { return float64(f.routers) })
	gauge("services", "Services that exist.", func(f *figures) float64 { return float64(f.services) })
	gauge("services_unserved", "Services that nobody serves who should: they had an instance, or a host would serve them and may not; or no instance gets flows.", func(f *figures) float64 { return float64(f.unserved) })
	gauge("instances", "Instances that are registered.", func(f *figures) float64 { return float64(f.instances) })
	gauge("generation", "Generation of the rules.", func(f *figures) float64 { return float64(f.generation) })
	gauge("state_pending", "Records that are not saved yet.", func(f *figures) float64 { return float64(f.pending) })
	m.GaugeTable("hosts", "Hosts by state.", []string{"state"}, func(add obs.Add) {
		if f := n.figures(); f != nil {
			for state, count := range f.hosts {
				add(float64(count), state)
			}
		}
	})
	m.GaugeTable("controllers", "Controllers of the network by state, as the one that leads sees them.", []string{"state"}, func(add obs.Add) {
		if f := n.figures(); f != nil {
			for state, count := range f.controllers {
				add(float64(count), state)
			}
		}
	})
	n.exportBoost(m)
	m.GaugeTable("router_lag", "How many changes of rules a router has not applied yet, of those that it was told.", []string{"router"}, n.lags)
}

// lags tells of each connected router how far it is behind.
func (n *network) lags(add obs.Add) {
	ctx, cancel := context.WithTimeout(context.Background(), figuresWait)
	defer cancel()
	var lags map[string]int
	if n.ask(ctx, func() { lags = n.pushes.Lags() }) != nil {
		return // the loop may come to it yet, when nobody collects any more
	}
	for name, behind := range lags {
		add(float64(behind), name)
	}
}
