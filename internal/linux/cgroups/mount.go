package cgroups

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// MountInfo is the table of this process's mounts, proc_pid_mountinfo(5).
const MountInfo = "/proc/self/mountinfo"

// Find finds the mounts of cgroup v2 in a table of mounts: one that shows the whole hierarchy, and one that shows a part of it, as
// in a container. In hybrid mode, with version 1 beside it, the whole is not at /sys/fs/cgroup.
func Find(mountinfo string) (whole, part string) {
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		words := strings.Fields(left)
		switch {
		case !ok || len(words) < 5 || !strings.HasPrefix(right, "cgroup2 "):
		case words[3] == "/":
			return words[4], ""
		case part == "":
			part = words[4]
		}
	}
	return "", part
}

// Mount is where groups are made: the whole hierarchy where this process sees it, or else the part that it sees.
func Mount() (string, error) {
	table, err := os.ReadFile(MountInfo)
	if err != nil {
		return "", err
	}
	whole, part := Find(string(table))
	switch {
	case whole != "":
		return whole, nil
	case part != "":
		return part, nil
	}
	return "", errors.New("no cgroup v2 is mounted, and it is needed to end programs with all their children: mount -t cgroup2 none /sys/fs/cgroup")
}

// Root opens the root of the hierarchy. Where the whole of it is not mounted, as under `ip netns exec`, it is mounted out of
// everyone's sight.
func Root() (*os.File, error) {
	if table, err := os.ReadFile(MountInfo); err == nil {
		if whole, _ := Find(string(table)); whole != "" {
			return os.Open(whole)
		}
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

// Path names an open directory of the hierarchy, for as long as it is open: it may be mounted nowhere.
func Path(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
