package emu

import (
	"errors"
	"fmt"
	"runtime"
)

// A Config is what an engine emulates.
type Config struct {
	Links   []LinkConfig `json:"links"`
	Workers int          `json:"workers,omitempty"` // threads; 0: one less than there are CPUs, at least one
}

// A LinkConfig is one link. Params[0] hold from Ends[0] to Ends[1], Params[1] back.
type LinkConfig struct {
	Ends   [2]End    `json:"ends"`
	Params [2]Params `json:"params"`
}

// An End is one interface that the engine makes, down and without addresses. It goes with the engine.
type End struct {
	Netns string `json:"netns"` // path of the network namespace; "" for the engine's own
	Dev   string `json:"dev"`   // name of the interface there
	MTU   int    `json:"mtu"`
}

// LinkStats are the present state of a link.
type LinkStats struct {
	Ends  [2]End       `json:"ends"`
	Lines [2]LineStats `json:"lines"` // Lines[0] from Ends[0] to Ends[1]
}

// LineStats are the present state of one direction of a link.
type LineStats struct {
	Params   Params    `json:"params"`
	Counters Counters  `json:"counters"`
	Refused  uint64    `json:"refused"`  // parts that the far interface did not take: it is down
	Starved  uint64    `json:"starved"`  // frames for which the engine had no memory
	Late     LateStats `json:"late"`     // since the parameters were set
	Realtime bool      `json:"realtime"` // the kernel runs the engine before ordinary programs
	Busy     float64   `json:"busy"`     // share of the time that the engine's thread works
}

// An Engine moves frames between pairs of interfaces. Its methods may be called from any goroutine.
type Engine struct {
	links   []LinkConfig
	workers []*worker
}

// Start makes the interfaces of all links and begins to move frames. It needs root. The process
// should have at least two processors of the Go scheduler more than workers.
func Start(cfg Config) (*Engine, error) {
	for _, l := range cfg.Links {
		for i, p := range l.Params {
			if err := p.Validate(); err != nil {
				return nil, fmt.Errorf("link from %s to %s: %w", l.Ends[i].Dev, l.Ends[1-i].Dev, err)
			}
		}
	}
	e := &Engine{links: cfg.Links}
	n := cfg.Workers
	if n == 0 {
		n = max(1, runtime.NumCPU()-1)
	}
	for range max(1, min(n, len(cfg.Links))) {
		w, err := newWorker()
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.workers = append(e.workers, w)
	}
	for i, l := range cfg.Links {
		if err := e.of(i).add(l); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	for _, w := range e.workers {
		w.started = true
		go w.run()
	}
	return e, nil
}

// of is the worker of a link. A link's two directions are one worker's.
func (e *Engine) of(link int) *worker { return e.workers[link%len(e.workers)] }

// Set changes the parameters of a link for the packets to come.
func (e *Engine) Set(link int, p [2]Params) error {
	if link < 0 || link >= len(e.links) {
		return fmt.Errorf("link %d: there are %d", link, len(e.links))
	}
	for i := range p {
		if err := p[i].Validate(); err != nil {
			return err
		}
	}
	return e.of(link).ask(func(w *worker) {
		for i, f := range w.pair(link / len(e.workers)) {
			f.line.Set(p[i])
			f.late = Lateness{}
		}
	})
}

// Stats are those of all links, in the order of the configuration.
func (e *Engine) Stats() ([]LinkStats, error) {
	all := make([]LinkStats, len(e.links))
	for i, l := range e.links {
		all[i].Ends = l.Ends
		err := e.of(i).ask(func(w *worker) {
			for d, f := range w.pair(i / len(e.workers)) {
				all[i].Lines[d] = f.stats(w)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Close stops the engine; its interfaces are gone afterwards.
func (e *Engine) Close() error {
	for _, w := range e.workers {
		w.close()
	}
	return nil
}
