package nstest

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// CgroupRoot finds the cgroup v2 mount: in hybrid mode it is not /sys/fs/cgroup.
func CgroupRoot() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		left, right, ok := strings.Cut(s.Text(), " - ")
		if fields := strings.Fields(left); ok && len(fields) > 4 && strings.HasPrefix(right, "cgroup2 ") {
			return fields[4], nil
		}
	}
	return "", errors.New("no cgroup v2 in /proc/self/mountinfo; mount it: mount -t cgroup2 none /sys/fs/cgroup")
}

// Cgroup makes a cgroup for the test and returns its directory; everything in it is killed at the end.
func Cgroup(t testing.TB, name string) string {
	t.Helper()
	root, err := CgroupRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, fmt.Sprintf("scaffold-test-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { RemoveCgroup(dir) })
	return dir
}

// RemoveCgroup kills all processes below dir and removes it with its children.
func RemoveCgroup(dir string) {
	os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	var dirs []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	// A killed process is in the cgroup until it has been reaped.
	for _, d := range slices.Backward(dirs) {
		for end := time.Now().Add(5 * time.Second); os.Remove(d) != nil && time.Now().Before(end); {
			if _, err := os.Stat(d); err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}
