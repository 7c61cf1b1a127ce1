package emu

import (
	"errors"
	"sync"
	"time"
)

// Run moves virtual time on: everything that is due until then happens, in order, as fast as the machine can.
func (n *Net) Run(until time.Duration) error {
	if !n.opt.Virtual {
		return errors.New("the network runs on the machine's clock; expected Options.Virtual for Run")
	}
	if !n.running {
		if err := n.begin(); err != nil {
			return err
		}
	}
	for n.window(until) {
	}
	for _, s := range n.shards {
		s.now = until
	}
	return nil
}

// window lets all shards go on, each for itself, for as long as nothing that one sends can reach another: the least
// delay between two shards. It returns false when nothing more is due.
func (n *Net) window(until time.Duration) (more bool) {
	first := Never
	for _, s := range n.shards {
		s.collect()
		first = min(first, s.run())
	}
	if first > until {
		return false
	}
	last := until
	if ahead := n.lookahead(); ahead <= until-first {
		last = first + ahead - 1
	}
	if len(n.shards) == 1 {
		n.shards[0].runTo(last)
		return true
	}
	n.together(func(s *shard) { s.runTo(last) })
	return true
}

// together calls f for all shards at once.
func (n *Net) together(f func(*shard)) {
	var all sync.WaitGroup
	for _, s := range n.shards {
		all.Go(func() { f(s) })
	}
	all.Wait()
}

// runTo lets everything happen that is due by then.
func (s *shard) runTo(last time.Duration) {
	for next := s.run(); next <= last; next = s.run() {
		s.now = next
	}
}

// lookahead is the least time from one shard to another.
func (n *Net) lookahead() time.Duration {
	least := Never
	for _, w := range n.crossing {
		least = min(least, w.line.p.latency())
	}
	return least
}

// begin places everything and wakes the programs.
func (n *Net) begin() error {
	if err := n.place(); err != nil {
		return err
	}
	n.running = true
	for _, s := range n.shards {
		s.begin()
	}
	return nil
}

// Idle reports whether nothing will happen any more in virtual time unless something is sent.
func (n *Net) Idle() bool {
	for _, s := range n.shards {
		if len(s.ready) > 0 || s.wheel.first() != nil {
			return false
		}
	}
	return true
}
