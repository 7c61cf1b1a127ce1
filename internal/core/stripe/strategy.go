package stripe

import (
	"fmt"
	"time"
)

// A Strategy decides which connection takes the next chunk. It belongs to one sender.
type Strategy interface {
	// takes reports whether the connection, which has room, takes the next n bytes; else they are left to another one.
	takes(now time.Time, s *Sender, p *path, n uint64) bool
	// took is called when it did.
	took(s *Sender, p *path, n uint64)
	// copies is on how many connections each chunk goes out.
	copies() int
}

// Strategies are the names that StrategyNamed knows; the first is the one to take where nothing speaks for another.
var Strategies = []string{"pull", "ecf", "weighted", "rr", "redundant"}

// StrategyNamed makes the strategy of that name.
func StrategyNamed(name string) (Strategy, error) {
	switch name {
	case "pull":
		return pull{}, nil
	case "ecf":
		return &ecf{}, nil
	case "weighted":
		return weighted{}, nil
	case "rr":
		return &roundRobin{}, nil
	case "redundant":
		return redundant{}, nil
	}
	return nil, fmt.Errorf("%q is no strategy: choose one of %v", name, Strategies)
}

// pull gives the next chunk to whichever connection has room first: on paths that are alike none waits for another.
type pull struct{}

func (pull) takes(time.Time, *Sender, *path, uint64) bool { return true }
func (pull) took(*Sender, *path, uint64)                  {}
func (pull) copies() int                                  { return 1 }

// redundant sends each chunk on two connections: the death, or the stall, of any one of them costs no time.
type redundant struct{ pull }

func (redundant) copies() int { return 2 }

// weighted shares bytes out by the connections' weights: one takes the next chunk unless another, by its weight, has
// had less.
type weighted struct{}

func (weighted) takes(_ time.Time, s *Sender, p *path, n uint64) bool {
	for _, o := range s.paths {
		if !o.idle() && o.share+float64(n) < p.share { // less than a chunk behind is as good as even
			return false
		}
	}
	return true
}

func (weighted) took(_ *Sender, p *path, n uint64) {
	w := p.Weight
	if w <= 0 {
		w = 1
	}
	p.share += float64(n) / w
}

func (weighted) copies() int { return 1 }

// roundRobin gives each connection a chunk in turn, however fast it is; it is there to be measured against.
type roundRobin struct{ turn int }

func (r *roundRobin) takes(_ time.Time, s *Sender, p *path, _ uint64) bool {
	for range s.paths { // p does not rest, so one of them has the turn
		if r.turn %= len(s.paths); !s.paths[r.turn].idle() {
			break
		}
		r.turn++
	}
	return s.paths[r.turn] == p
}

func (r *roundRobin) took(*Sender, *path, uint64) { r.turn++ }
func (*roundRobin) copies() int                   { return 1 }

// ecf is earliest completion first (Lim et al., CoNEXT 2017): a slow connection does not take a chunk that a faster one,
// which has no room just now, would bring sooner together with all that waits before it. So nothing at the end of a
// transfer waits for the slow path.
type ecf struct {
	until time.Time // whom the chunk is left to has had time enough by then
}

func (e *ecf) takes(now time.Time, s *Sender, p *path, n uint64) bool {
	own := p.ahead(n)
	best := own
	for _, o := range s.paths {
		if o != p && !o.idle() && o.Rate > 0 {
			best = min(best, o.ahead(max(s.backlog, n)))
		}
	}
	if best >= own || p.Rate <= 0 {
		return true
	}
	switch {
	case e.until.IsZero():
		e.until = now.Add(2 * best)
	case !now.Before(e.until): // the faster one stalls
		return true
	}
	s.lookAt(e.until)
	return false
}

func (e *ecf) took(*Sender, *path, uint64) { e.until = time.Time{} }
func (*ecf) copies() int                   { return 1 }
