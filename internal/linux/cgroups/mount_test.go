package cgroups_test

import (
	"testing"

	"scaffold.dev/scaffold/internal/linux/cgroups"
)

func TestTheWholeHierarchyIsPreferredToAPartOfIt(t *testing.T) {
	const (
		one   = "30 23 0:27 / /sys/fs/cgroup/cpu rw shared:2 - cgroup cgroup rw,cpu\n"
		part  = "31 23 0:28 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		whole = "32 23 0:28 / /sys/fs/cgroup/unified rw shared:1 - cgroup2 cgroup2 rw\n"
	)
	for name, c := range map[string]struct{ table, whole, part string }{
		"hybrid":               {one + whole, "/sys/fs/cgroup/unified", ""},
		"a part first":         {part + whole, "/sys/fs/cgroup/unified", ""},
		"a container":          {one + part, "", "/sys/fs/cgroup"},
		"version 1 alone":      {one, "", ""},
		"nothing":              {"", "", ""},
		"a line that is short": {"31 23 - cgroup2 cgroup2 rw\n", "", ""},
	} {
		if whole, part := cgroups.Find(c.table); whole != c.whole || part != c.part {
			t.Errorf("%s: the whole at %q, a part at %q; want %q and %q", name, whole, part, c.whole, c.part)
		}
	}
}
