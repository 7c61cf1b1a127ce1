package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// checkMachine refuses a lab that does not fit into the machine, before anything is made.
func (l *Lab) checkMachine() error {
	available, err := availableMemory()
	if err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	need := l.plan.Need()
	if err := need.Fits(available, limit.Max); err != nil {
		return fmt.Errorf("lab %s: %w", l.File.Name, err)
	}
	if need.Routers > 0 {
		l.opt.logf("lab %s: about %d MB for %d routers inside the engine with %d routes", l.File.Name, need.Memory>>20, need.Routers, need.Routes)
	}
	return nil
}

// availableMemory is what programs can have without swapping, in bytes.
func availableMemory() (uint64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb uint64
		if rest, ok := strings.CutPrefix(s.Text(), "MemAvailable:"); ok {
			if _, err := fmt.Sscan(rest, &kb); err == nil {
				return kb << 10, nil
			}
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}
