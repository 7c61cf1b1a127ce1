package emu_test

import (
	"errors"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
)

// Zero would be taken for the sum of two runs that are equal.
func TestANetworkWithoutATraceHasNoSum(t *testing.T) {
	c := newChain(t, 1, emu.Params{}, wire)
	c.source.Count = 10
	c.run(t, time.Second)
	if sum, err := c.Sum(); sum != 0 || !errors.Is(err, emu.ErrNoTrace) {
		t.Errorf("%x, %v; want ErrNoTrace", sum, err)
	}
}
