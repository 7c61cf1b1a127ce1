package badinput

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/stats"
	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// here is all that the product could leave in the surroundings of these tests: nstest gives them a /run
// and a mount namespace of their own.
func here(t *testing.T) string {
	t.Helper()
	var all []string
	for _, top := range []string{"/run/scaffold", "/run/netns", "/var/lib/scaffold"} {
		filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error { // what is not there is not left
			if err == nil {
				all = append(all, "file "+path)
			}
			return nil
		})
	}
	for _, pattern := range []string{"/sys/class/net/to-*", "/sys/class/net/scaf*"} {
		found, _ := filepath.Glob(pattern)
		all = append(all, found...)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, nstest.LabName()) || strings.Contains(line, nstest.BPFFS) { // others' labs come and go
			all = append(all, "mount "+strings.TrimSpace(line))
		}
	}
	return strings.Join(slices.Concat(all, groups(t), processes(t)), "\n")
}

// groups are the cgroups of labs with this test's name, and of programs under `scaffold run`.
func groups(t *testing.T) []string {
	t.Helper()
	root, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(root, "scaffold-lab-"+nstest.LabName()+"*"))
	return found
}

// processes are those in the mount namespace of the tests, this one aside, and in namespaces made from it.
func processes(t *testing.T) (all []string) {
	t.Helper()
	mine := fmt.Sprint(os.Getpid())
	own, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(own, fmt.Sprintf("scaffold-test-%d", os.Getppid()))
	filepath.WalkDir(group, func(path string, d os.DirEntry, err error) error { // gone is not left
		if err != nil || d.Name() != "cgroup.procs" {
			return nil
		}
		text, _ := os.ReadFile(path)
		for _, pid := range strings.Fields(string(text)) {
			if name, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && pid != mine && len(name) > 0 {
				all = append(all, "process "+pid+" "+strings.ReplaceAll(string(name), "\x00", " "))
			}
		}
		return nil
	})
	return all
}

// programs are those that stats.Unheld lists.
func programs(t *testing.T) map[uint32]string {
	t.Helper()
	all, err := stats.Unheld()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// alone reports whether no other lab or test runs on this machine: programs may be theirs.
func alone(t *testing.T) bool {
	t.Helper()
	root, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	labs, _ := filepath.Glob(filepath.Join(root, "scaffold-lab-*"))
	tests, _ := filepath.Glob(filepath.Join(root, "scaffold-test-*"))
	return len(labs) == 0 && len(tests) <= 1
}

// A snapshot is compared with what there is after the test.
type snapshot struct {
	here     string
	programs map[uint32]string
}

func snap(t *testing.T) snapshot {
	t.Helper()
	nstest.Root(t)
	return snapshot{here(t), programs(t)}
}

// same fails unless everything is as before. The kernel frees programs and namespaces a moment after
// their last user has gone, and tests of other packages may run beside this one.
func (s snapshot) same(t *testing.T, after string) {
	t.Helper()
	nstest.Wait(t, "the machine after "+after, func() error {
		if now := here(t); now != s.here {
			return fmt.Errorf("before:\n%s\nafter:\n%s", s.here, now)
		}
		for id, name := range programs(t) {
			if _, old := s.programs[id]; !old && alone(t) {
				return fmt.Errorf("BPF program %d (%s) is still there, and no process holds it", id, name)
			}
		}
		return nil
	})
}
