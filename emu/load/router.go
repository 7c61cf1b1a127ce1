package load

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
)

// Interval is over how long load is measured by default: most round trips are shorter (section 3.2 of the paper).
const Interval = 200 * time.Millisecond

// A Router is an IP router that marks packets with the load of the links that they leave by. Links without a rate are
// never loaded.
type Router struct {
	*forward.Forwarder
	interval time.Duration
	meters   []meter // by port
	marked   [4]uint64
}

// New makes a router; interval 0 is Interval.
func New(cfg forward.Config, interval time.Duration) (*Router, error) {
	if interval == 0 {
		interval = Interval
	}
	if interval < 0 || interval > time.Minute {
		return nil, fmt.Errorf("interval %v: expected up to a minute, such as %v", interval, Interval)
	}
	f, err := forward.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Router{Forwarder: f, interval: interval}, nil
}

// Process implements emu.Program.
func (x *Router) Process(r *emu.Router, batch []emu.Packet) {
	x.Forwarder.Process(r, batch)
	if len(x.meters) != len(r.Ports()) {
		x.meters = make([]meter, len(r.Ports()))
	}
	for i := range batch {
		if p := &batch[i]; int(p.Port) < len(x.meters) {
			x.mark(r, p)
		}
	}
}

// mark measures and marks a packet that leaves by a port.
func (x *Router) mark(r *emu.Router, p *emu.Packet) {
	port := r.Ports()[p.Port]
	rate := port.Rate()
	if rate == 0 {
		return
	}
	bytes := uint64(p.Count()) * uint64(p.Len()+etherLen)
	level := x.meters[p.Port].arrive(r.Now(), x.interval, bytes, port.Waiting(r.Now()), rate)
	x.marked[level] += uint64(p.Count())
	raise(r, p, level)
}

// etherLen is what a link carries before the IP header.
const etherLen = 14

// Handlers implements emu.Handled.
func (x *Router) Handlers(r *emu.Router) map[string]emu.Handler {
	all := map[string]emu.Handler{
		"load":   {Get: x.loads, Doc: "of each port in its last interval, with the highest so far"},
		"levels": {Get: x.levels, Doc: "packets that left at each level"},
		"interval": {Get: func() (string, error) { return x.interval.String(), nil }, Set: x.setInterval,
			Doc: "over how long load is measured, such as 200ms"},
	}
	maps.Copy(all, x.Forwarder.Handlers(r))
	return all
}

func (x *Router) loads() (string, error) {
	var b strings.Builder
	for i, m := range x.meters {
		fmt.Fprintf(&b, "port %d %.1f%% %s highest %.1f%%\n", i, 100*m.load, m.level, 100*m.highest)
	}
	return b.String(), nil
}

func (x *Router) levels() (string, error) {
	return fmt.Sprintf("low %d\nhigh %d\noverload %d", x.marked[Low], x.marked[High], x.marked[Overload]), nil
}

func (x *Router) setInterval(s string) error {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d <= 0 || d > time.Minute {
		return fmt.Errorf("interval %q: expected a time up to a minute, such as 200ms", s)
	}
	x.interval = d
	return nil
}
