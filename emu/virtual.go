package emu

import (
	"errors"
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
	for _, s := range n.shards {
		for next := s.run(); next <= until; next = s.run() {
			s.now = next
		}
		s.now = until
	}
	return nil
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
