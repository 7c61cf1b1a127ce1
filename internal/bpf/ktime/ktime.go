// Package ktime tells the time that programs in the kernel stamp entries of their maps with.
package ktime

import "golang.org/x/sys/unix"

// Now is CLOCK_MONOTONIC in ns: the clock of bpf_ktime_get_ns, and of bpf_ktime_get_coarse_ns, which is up to a tick behind.
func Now() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the clock exists on every Linux
	}
	return uint64(ts.Nano())
}
