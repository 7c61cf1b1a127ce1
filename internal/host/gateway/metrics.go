package gateway

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"scaffold.dev/scaffold/internal/operate/obs"
)

// newMetrics are read when they are asked for.
func (g *Gateway) newMetrics() *obs.Metrics {
	m := obs.NewMetrics("gateway")
	labels := []string{"listener", "service"}
	m.GaugeTable("flows", "Connections and UDP sessions now.", labels, func(add obs.Add) {
		for _, d := range g.all() {
			add(float64(d.flows()), d.labels()...)
		}
	})
	m.CounterTable("accepted_total", "Clients that came.", labels, g.each(func(c *counts) *atomic.Uint64 { return &c.accepted }))
	m.CounterTable("retried_total", "Connections to an instance that were tried again.", labels, g.each(func(c *counts) *atomic.Uint64 { return &c.retried }))
	m.CounterTable("broken_total", "Connections that ended by a reset or an error.", labels, g.each(func(c *counts) *atomic.Uint64 { return &c.broken }))
	m.CounterTable("dropped_total", "Datagrams that no socket took.", labels, g.each(func(c *counts) *atomic.Uint64 { return &c.dropped }))
	m.CounterTable("bytes_total", "Bytes, up to services and down from them.", append(labels, "direction"), func(add obs.Add) {
		for _, d := range g.all() {
			add(float64(d.count.up.Load()), append(d.labels(), "up")...)
			add(float64(d.count.down.Load()), append(d.labels(), "down")...)
		}
	})
	m.CounterTable("refused_total", "Clients that were sent away, by reason.", append(labels, "reason"), func(add obs.Add) {
		for _, d := range g.all() {
			add(float64(d.count.failed.Load()), append(d.labels(), "no server")...)
			add(float64(d.count.crowded.Load()), append(d.labels(), "too many of one client")...)
			add(float64(d.count.full.Load()), append(d.labels(), "too many")...)
		}
	})
	m.GaugeFunc("room", "How many flows the gateway takes.", func() float64 {
		g.room.mu.Lock()
		defer g.room.mu.Unlock()
		return float64(g.room.size)
	})
	g.dialed = m.Histogram("connect_seconds", "From a client that came to a server that took it.",
		[]float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10})
	return m
}

// each adds one counter of every door.
func (g *Gateway) each(of func(*counts) *atomic.Uint64) func(obs.Add) {
	return func(add obs.Add) {
		for _, d := range g.all() {
			add(float64(of(&d.count).Load()), d.labels()...)
		}
	}
}

func (d *door) labels() []string { return []string{d.label(), d.want.Load().Target()} }

// label tells the two sockets of a listener apart that takes IPv4 and IPv6.
func (d *door) label() string {
	switch d.at.network {
	case "udp4", "udp6":
		return d.at.address + "/udp"
	case "unix":
		return "unix:" + d.at.address
	}
	return d.at.address
}

// checked serves the health after it has looked at what no event tells of: whether names have addresses.
func (g *Gateway) checked(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.health.Set("names", g.nameless())
		h.ServeHTTP(w, r)
	})
}

// nameless is an error where no listener leads anywhere. One name that does not exist is its owner's trouble.
func (g *Gateway) nameless() (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.doors {
		name := d.want.Load().Service
		if _, e := g.names.find(g.ctx, name); e == nil {
			return nil
		} else if err == nil {
			err = fmt.Errorf("no name has an address: %w", e)
		}
	}
	return err
}
