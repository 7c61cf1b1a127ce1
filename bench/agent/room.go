package agent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// RoomFor lets this process have so many open files.
func RoomFor(files int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	if l.Cur >= uint64(files) {
		return nil
	}
	l.Cur, l.Max = uint64(files), max(l.Max, uint64(files))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("allow %d open files: %w", files, err)
	}
	return nil
}
