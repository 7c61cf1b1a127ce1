package boostd

import (
	"fmt"
	"strconv"
	"time"
)

// numbersOfOne is more than one worker takes: sessions and connections of its trunks have numbers above its incarnation. As
// time of the clock it is 4 s: an agent that begins anew as a whole knows of no worker before, and has to come out above.
const numbersOfOne = 1 << 32

// incarnation is this worker's. It is above all numbers that a worker before it took, for the other agents remember them,
// and a clock that was set back meanwhile does not count.
func incarnation(now time.Time, keep store) (uint64, error) {
	mine := uint64(now.UnixNano())
	if text := foundText(keep, incarnationKey); text != nil {
		last, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("what the agent's keeper has of the worker before: %w", err)
		}
		mine = max(mine, last+numbersOfOne)
	}
	return mine, holdText(keep, incarnationKey, strconv.AppendUint(nil, mine, 10))
}
