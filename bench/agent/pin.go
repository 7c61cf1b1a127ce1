package agent

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin keeps this process on one processor; below 0 it may run anywhere. Where client and server share
// one, a request costs the work done for it; on two, mostly the time to wake an idle processor, which
// changes from second to second.
func Pin(cpu int) error {
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads { // threads that start later inherit it
		id, _ := strconv.Atoi(t.Name())
		if err := unix.SchedSetaffinity(id, &set); err != nil {
			return fmt.Errorf("stay on processor %d: %w", cpu, err)
		}
	}
	return nil
}
