package emu

import (
	"errors"
	"fmt"
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

// LinkStats are the present state of a link.
type LinkStats struct {
	Ends  [2]End       `json:"ends"`
	Lines [2]LineStats `json:"lines"` // Lines[0] from Ends[0] to Ends[1]
}

// An Engine moves frames between pairs of interfaces. Its methods may be called from any goroutine.
type Engine struct{ net *Net }

// Start makes the interfaces of all links and begins to move frames. It needs root.
func Start(cfg Config) (*Engine, error) {
	e := &Engine{New(Options{Shards: cfg.Workers})}
	for _, l := range cfg.Links {
		if err := e.add(l); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if err := e.net.Start(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Engine) add(l LinkConfig) error {
	for i, p := range l.Params {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("link from %s to %s: %w", l.Ends[i].Dev, l.Ends[1-i].Dev, err)
		}
	}
	a, err := e.net.Edge(l.Ends[0])
	if err != nil {
		return err
	}
	b, err := e.net.Edge(l.Ends[1])
	if err != nil {
		return err
	}
	_, err = e.net.Link(a, b, l.Params)
	return err
}

// Set changes the parameters of a link for the packets to come.
func (e *Engine) Set(link int, p [2]Params) error {
	if link < 0 || link >= len(e.net.links) {
		return fmt.Errorf("link %d: there are %d", link, len(e.net.links))
	}
	return e.net.links[link].Set(p)
}

// Stats are those of all links, in the order of the configuration.
func (e *Engine) Stats() ([]LinkStats, error) {
	all := make([]LinkStats, len(e.net.links))
	for i, l := range e.net.links {
		lines, err := l.Stats()
		if err != nil {
			return nil, err
		}
		all[i] = LinkStats{[2]End{l.nodes[0].(*Edge).end, l.nodes[1].(*Edge).end}, lines}
	}
	return all, nil
}

// Close stops the engine; its interfaces are gone afterwards.
func (e *Engine) Close() error { return e.net.Close() }
