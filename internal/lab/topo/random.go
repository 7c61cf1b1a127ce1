package topo

import (
	"math/bits"
	"math/rand/v2"
)

// A dice draws numbers that are the same for the same seed in every version of Go: the generator's are
// by its definition, and what is made of them is done here.
type dice struct{ source *rand.PCG }

func newDice(seed uint64) dice { return dice{rand.NewPCG(seed, 0x746f706f)} }

// share is uniform from 0 to below 1.
func (d dice) share() float64 { return float64(d.source.Uint64()>>11) / (1 << 53) }

// below is uniform from 0 to n-1; the bias is 2^-64 of n.
func (d dice) below(n int) int {
	high, _ := bits.Mul64(d.source.Uint64(), uint64(n))
	return int(high)
}
