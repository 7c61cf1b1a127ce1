package agent

import "golang.org/x/sys/unix"

// Now is CLOCK_MONOTONIC in nanoseconds, comparable between processes of one machine.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("CLOCK_MONOTONIC: " + err.Error()) // every Linux has it
	}
	return ts.Nano()
}
