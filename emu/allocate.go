package emu

import "slices"

// A Load is what a placement is decided by: how much work each part of a network is, and how much passes between them.
type Load struct {
	Work  []float64 // of each part, in hops a second or any other unit
	Fixed []int     // shard that a part must be in, -1 for any
	Pairs []Traffic
}

// Traffic is what passes between two parts, in both directions, in the unit of Work.
type Traffic struct {
	A, B   int
	Amount float64
}

// crossingCost is what a packet costs each of two shards between which it passes, in hops: about 20 ns for copying it
// and giving its place back, where a hop takes 10.
const crossingCost = 2

// Assign divides parts among shards so that the one with the most to do has as little as can be, crossings
// included: a placement that leaves shards idle is better than one that makes every packet cross. It grows parts from
// the busiest ones along the strongest ties and improves that by single moves, after Fiduccia and Mattheyses (1982).
func Assign(l Load, shards int) []int {
	a := &assignment{load: l, shards: shards, near: make([][]tie, len(l.Work))}
	for _, p := range l.Pairs {
		if p.A != p.B {
			a.near[p.A] = append(a.near[p.A], tie{p.B, p.Amount})
			a.near[p.B] = append(a.near[p.B], tie{p.A, p.Amount})
		}
	}
	best := a.together()
	for used := 2; used <= shards; used++ {
		if other := a.refine(a.grow(used)); a.cost(other) < a.cost(best)*(1-worth) {
			best = other
		}
	}
	return best
}

// worth is by how much a placement must be better than one on fewer shards.
const worth = 0.02

type tie struct {
	other  int
	amount float64
}

type assignment struct {
	load   Load
	shards int
	near   [][]tie
}

// together puts all into one shard, but for what is fixed elsewhere.
func (a *assignment) together() []int {
	of := make([]int, len(a.load.Work))
	for i := range of {
		of[i] = max(0, a.load.Fixed[i])
	}
	return of
}

// loads are what each shard has to do.
func (a *assignment) loads(of []int) []float64 {
	sum := make([]float64, a.shards)
	for i, w := range a.load.Work {
		sum[of[i]] += w
	}
	for _, p := range a.load.Pairs {
		if of[p.A] != of[p.B] {
			sum[of[p.A]] += crossingCost * p.Amount
			sum[of[p.B]] += crossingCost * p.Amount
		}
	}
	return sum
}

// cost is what the busiest shard has to do; a share of the total decides between equals.
func (a *assignment) cost(of []int) float64 {
	loads := a.loads(of)
	total := 0.0
	for _, l := range loads {
		total += l
	}
	return slices.Max(loads) + total/1e3
}

// grow fills one shard after the other, each from a part that is far from the others on.
func (a *assignment) grow(shards int) []int {
	of := slices.Repeat([]int{-1}, len(a.load.Work))
	left := 0.0
	for i, f := range a.load.Fixed {
		of[i] = f
		if f < 0 {
			left += a.load.Work[i]
		}
	}
	for s := range shards {
		share := left / float64(shards)
		if s == shards-1 {
			share = left + 1
		}
		a.fill(of, s, share)
	}
	for i := range of {
		of[i] = max(of[i], 0)
	}
	return of
}

// fill gives a shard parts with about that much work, always the one that is tied most to those that it has.
func (a *assignment) fill(of []int, shard int, share float64) {
	pull := make([]float64, len(of))
	for i := range of {
		if of[i] == shard {
			for _, t := range a.near[i] {
				pull[t.other] += t.amount
			}
		}
	}
	for got := 0.0; got < share; {
		next := -1
		for i := range of {
			if of[i] < 0 && (next < 0 || pull[i] > pull[next]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		of[next] = shard
		got += a.load.Work[next]
		for _, t := range a.near[next] {
			pull[t.other] += t.amount
		}
	}
}

// refine moves single parts as long as that helps.
func (a *assignment) refine(of []int) []int {
	loads := a.loads(of)
	for range maxRounds {
		moved := false
		for i := range of {
			if a.load.Fixed[i] >= 0 {
				continue
			}
			if s, ok := a.better(of, loads, i); ok {
				a.move(of, loads, i, s)
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	return of
}

// maxRounds bounds the work of refine.
const maxRounds = 50

// better finds a shard where the part would lessen the load of the busier of the two shards, or the crossings at the
// same load.
func (a *assignment) better(of []int, loads []float64, i int) (best int, ok bool) {
	from := of[i]
	least := 0.0
	for s := range a.shards {
		if s == from {
			continue
		}
		before := max(loads[from], loads[s]) + (loads[from]+loads[s])/1e3
		down, up := a.change(of, i, s)
		after := max(loads[from]+down, loads[s]+up) + (loads[from]+down+loads[s]+up)/1e3
		if gain := before - after; gain > least+1e-9*before {
			least, best, ok = gain, s, true
		}
	}
	return best, ok
}

// change is by how much the loads of both shards change when a part moves.
func (a *assignment) change(of []int, i, to int) (from, into float64) {
	from, into = -a.load.Work[i], a.load.Work[i]
	for _, t := range a.near[i] {
		switch of[t.other] {
		case of[i]:
			from += crossingCost * t.amount
			into += crossingCost * t.amount
		case to:
			from -= crossingCost * t.amount
			into -= crossingCost * t.amount
		default:
			from -= crossingCost * t.amount
			into += crossingCost * t.amount
		}
	}
	return from, into
}

func (a *assignment) move(of []int, loads []float64, i, to int) {
	down, up := a.change(of, i, to)
	loads[of[i]] += down
	loads[to] += up
	of[i] = to
}
