package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// A Quota is a cgroup whose processes share a part of a processor.
type Quota struct{ dir string }

// quotaPeriod is the time in which they have their part, in µs: the kernel's own.
const quotaPeriod = 100_000

// quotaLeast is the least that the kernel gives in a period, in µs.
const quotaLeast = 1000

// NewQuota makes a group of that name with so much of a processor, by version 1 or 2, whichever has the controller "cpu".
func NewQuota(name string, part float64) (*Quota, error) {
	most := max(int(part*quotaPeriod), quotaLeast)
	root, key, value := "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", strconv.Itoa(most)
	if _, err := os.Stat(filepath.Join(root, key)); err != nil {
		if _, err := os.Stat(root + "/cpu.shares"); err != nil { // not the top of version 1, which has no quota
			root, key, value = "/sys/fs/cgroup", "cpu.max", fmt.Sprintf("%d %d", most, quotaPeriod)
			if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+cpu"), 0o644); err != nil {
				return nil, fmt.Errorf("no cgroup limits processors: %w", err)
			}
		}
	}
	g := &Quota{filepath.Join(root, name)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(g.dir, key), []byte(value), 0o644); err != nil {
		return nil, errors.Join(err, g.End())
	}
	return g, nil
}

// Take has a process in the group, with all that it has started.
func (g *Quota) Take(pid int) error {
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return err
	}
	for _, child := range Children(pid) {
		if err := g.Take(child); err != nil {
			return err
		}
	}
	return nil
}

// End removes the group, whose processes have been killed: version 1 has no event that tells when the last one is gone.
func (g *Quota) End() error {
	for tries := 100; ; tries-- {
		err := cgroups.Group(g.dir).RemoveEmpty()
		if !errors.Is(err, syscall.EBUSY) || tries == 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
