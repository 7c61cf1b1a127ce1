package emu

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Played is a frame of a recording and when it is to arrive, from the recording's start.
type Played struct {
	At    time.Duration
	Frame []byte // from the Ethernet header on, without checksum
}

// A Player replays a recording into a port.
type Player struct {
	port  *Port
	all   []Played
	start time.Duration
	timer timer
	sent  int
	lost  int
	done  chan struct{}
	once  sync.Once
}

// Play lets frames arrive at a port as if the link brought them, the first ones now: at a router for its program, at
// an edge for whoever is beyond. They are in the order of their times. Nothing may play into a port twice at once.
func (n *Net) Play(p *Port, recording []Played) (*Player, error) {
	for i, f := range recording {
		if len(f.Frame) < etherLen || len(f.Frame) > largeFrame-vnetLen {
			return nil, fmt.Errorf("frame %d of the recording has %d bytes; expected %d to %d", i+1, len(f.Frame), etherLen, largeFrame-vnetLen)
		}
		if i > 0 && f.At < recording[i-1].At {
			return nil, fmt.Errorf("frame %d of the recording is to arrive at %v, before the one in front of it at %v", i+1, f.At, recording[i-1].At)
		}
	}
	if !n.running {
		return nil, errors.New("nothing can be played before the network runs")
	}
	y := &Player{port: p, all: recording, done: make(chan struct{})}
	y.timer = timer{player: y, rank: 1<<61 + p.in.timer.rank, slot: idle}
	n.halting.Lock() // no router moves meanwhile
	defer n.halting.Unlock()
	n.players = append(n.players, y)
	return y, p.in.far.ask(func() {
		y.start = p.in.far.now
		p.in.far.wheel.set(&y.timer, y.start)
	})
}

// Done is closed when the recording is through, or stopped.
func (y *Player) Done() <-chan struct{} { return y.done }

// Stop ends the replay. It says how many frames arrived, and how many did not for lack of memory.
func (y *Player) Stop() (arrived, lost int) {
	n := y.port.Link.net
	n.halting.Lock()
	defer n.halting.Unlock()
	y.port.in.far.ask(func() { y.port.in.far.wheel.remove(&y.timer) }) //nolint:errcheck // the network has ended
	y.end()
	for i, other := range n.players {
		if other == y {
			n.players = append(n.players[:i:i], n.players[i+1:]...)
			break
		}
	}
	return y.sent, y.lost
}

func (y *Player) end() { y.once.Do(func() { close(y.done) }) }

// play lets the frames arrive that are due.
func (y *Player) play(s *shard) {
	for ; y.sent+y.lost < len(y.all); y.sent++ {
		f := &y.all[y.sent+y.lost]
		if due := y.start + f.At; due > s.now {
			s.wheel.set(&y.timer, due)
			return
		}
		p, ok := s.frame(f.Frame)
		if !ok {
			y.lost++
			y.sent--
			continue
		}
		s.one[0] = p
		y.port.in.deliver(s, s.one[:])
	}
	y.end()
}

// follow takes a player to the shard that its port belongs to now.
func (y *Player) follow(from, to *shard) {
	if y.timer.slot != idle {
		due := y.timer.due
		from.wheel.remove(&y.timer)
		to.wheel.set(&y.timer, due)
	}
}
