package emurouter

import (
	"time"

	"scaffold.dev/scaffold/emu"
)

// A Router is the program of one emulated router.
type Router struct {
	cfg  Config
	path *path
	ctl  *control // nil before the start
}

// New makes a program. It begins to speak with the controller once the engine wakes it.
func New(cfg Config) (*Router, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Router{cfg: cfg, path: newPath(&cfg)}, nil
}

// Process implements emu.Program.
func (x *Router) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		x.path.packet(r, &batch[i])
	}
}

// Wake implements emu.Timed: probes are sent, each in its turn.
func (x *Router) Wake(r *emu.Router, now time.Duration) time.Duration {
	if x.ctl == nil {
		x.ctl = newControl(x, r)
		go x.ctl.run() // ends with the engine, or when the router gets another program
	}
	x.path.watchPorts(r)
	return now + x.path.probe(r)
}

// LinkChanged tells at once what would be found at the next wake.
func (x *Router) LinkChanged(r *emu.Router, _ *emu.Port) { x.path.watchPorts(r) }
