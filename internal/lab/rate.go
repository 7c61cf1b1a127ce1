package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// The rates that TBF and its clock can hold.
const (
	minRate = 8_000           // bit/s
	maxRate = 100_000_000_000 // bit/s
)

// units of rates, in bit/s.
var units = []struct {
	suffix string
	factor float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// ParseRate reads a rate such as 1Gbit, 2.5mbit or 64kbit, in bit/s.
func ParseRate(s string) (uint64, error) {
	lower := strings.TrimSuffix(strings.ToLower(s), "/s")
	for _, u := range units {
		number, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if rate := v * u.factor; err == nil && rate >= minRate && rate <= maxRate {
			return uint64(rate), nil
		}
		break
	}
	return 0, fmt.Errorf("expected a rate from 8kbit to 100Gbit, such as 10Mbit or 1Gbit, found %q", s)
}
