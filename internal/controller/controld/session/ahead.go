package session

import "time"

// Ahead is how far the clock of who tells a time is before ours; 0 where none is told. The way takes milliseconds.
func Ahead(unixMs int64) time.Duration {
	if unixMs == 0 {
		return 0
	}
	return time.Until(time.UnixMilli(unixMs))
}
