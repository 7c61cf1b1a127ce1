package boostd

import (
	"fmt"
	"strconv"
	"time"
)

// numbersOfOne is more than one worker takes: sessions and connections of its trunks have numbers above its incarnation.
const numbersOfOne = 1 << 40

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
