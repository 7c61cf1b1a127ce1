package cgroups

import (
	"math"
	"testing"
)

func TestTheSmallestQuotaOfAllGroupsAboveCounts(t *testing.T) {
	const (
		first  = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
		other  = "33 31 0:30 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
		second = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		part   = "41 31 0:38 /docker/x /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
	)
	for name, c := range map[string]struct {
		groups, mounts string
		files          map[string]string
		want           float64
	}{
		"version 1": {"3:cpu,cpuacct:/a/b\n0::/c\n", other + first + second, map[string]string{
			"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "50000\n", "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
			"/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us": "100000\n"}, 0.5},
		"version 2": {"0::/a/b\n", second, map[string]string{
			"/sys/fs/cgroup/unified/a/cpu.max": "max 100000\n", "/sys/fs/cgroup/unified/a/b/cpu.max": "150000 100000\n"}, 1.5},
		"in a container":               {"0::/docker/x/a\n", part, map[string]string{"/sys/fs/cgroup/cpu.max": "25000 100000\n", "/sys/fs/cgroup/a/cpu.max": "max 100000\n"}, 0.25},
		"a name that begins like it":   {"0::/docker/xyz\n", part, map[string]string{"/sys/fs/cgroup/cpu.max": "25000 100000\n"}, math.Inf(1)},
		"nobody says a number":         {"3:cpu:/\n0::/\n", first + second, nil, math.Inf(1)},
		"nothing is mounted":           {"3:cpu:/\n0::/\n", "", nil, math.Inf(1)},
		"neither table can be read":    {"", "", nil, math.Inf(1)},
		"what is no number is ignored": {"0::/\n", second, map[string]string{"/sys/fs/cgroup/unified/cpu.max": "x 100000\n"}, math.Inf(1)},
	} {
		if got := quota(c.groups, c.mounts, func(path string) string { return c.files[path] }); got != c.want {
			t.Errorf("%s: %v processors, want %v", name, got, c.want)
		}
	}
}
