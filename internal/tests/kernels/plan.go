package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// A plan is what a machine is to do.
type plan struct {
	Limit    time.Duration // of the machine, from its start to its end
	Patience int           // how many times slower than others it is
	Suites   []suite
}

// share is the part of a machine's time that is kept for its end: what has been said by then is to get out.
const share = 20

// left is how long a suite may take that begins so long after the machine: as long as there is.
func (p plan) left(up time.Duration) time.Duration {
	return (p.Limit - p.Limit/share - up).Truncate(time.Second)
}

// uptime is how long this machine has been up.
func uptime() time.Duration {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0 // the machine outside ends this one
	}
	return time.Duration(info.Uptime) * time.Second
}
