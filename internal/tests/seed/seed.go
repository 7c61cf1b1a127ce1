// Package seed has property tests draw the same each time where SCAFFOLD_SEED says from what, as make test does: the same
// commit gets the same answer. Without it, as in a long run, each run draws anew. Packages with property tests import it
// for that alone.
package seed

import (
	"flag"
	"fmt"
	"os"
	"strconv"

	"pgregory.net/rapid"
)

// Env is the variable.
const Env = "SCAFFOLD_SEED"

// The library has its flag by now, which is not parsed yet: what the command line says goes before.
func init() {
	if s := os.Getenv(Env); s != "" {
		if err := flag.Set("rapid.seed", s); err != nil {
			panic(fmt.Sprintf("%s=%s: %v", Env, s, err))
		}
	}
}

// Number is the seed for tests that draw by themselves, other each time where none is given.
func Number(otherwise uint64) uint64 {
	n, err := strconv.ParseUint(os.Getenv(Env), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

var _ = rapid.Check // its init runs before ours
