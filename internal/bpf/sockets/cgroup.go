package sockets

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// CgroupRoot opens the root of the cgroup v2 hierarchy. The mount table says where it is (beside the
// v1 mounts in hybrid mode); where it is not mounted, as under `ip netns exec`, it is mounted out of
// everyone's sight.
func CgroupRoot() (*os.File, error) {
	if dir := cgroupMount("/proc/self/mountinfo"); dir != "" {
		return os.Open(dir)
	}
	fs, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("no cgroup2 file system is mounted and it cannot be opened: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("create a cgroup2 mount: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("mount cgroup2: %w", err)
	}
	defer unix.Close(fd)
	dir, err := unix.Openat(fd, ".", unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open cgroup2: %w", err)
	}
	return os.NewFile(uintptr(dir), "cgroup2"), nil
}

// cgroupMount finds the mount of the whole hierarchy: its root field is "/".
func cgroupMount(mountinfo string) string {
	f, err := os.Open(mountinfo)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		head, tail, ok := strings.Cut(s.Text(), " - ")
		left := strings.Fields(head)
		if ok && len(left) > 4 && left[3] == "/" && strings.HasPrefix(tail, "cgroup2 ") {
			return left[4]
		}
	}
	return ""
}

// procPath names an open file for callers that want a path.
func procPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
