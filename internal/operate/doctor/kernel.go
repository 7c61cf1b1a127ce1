package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/linux/priority"
)

// The capabilities that daemons need, by their bit in /proc/self/status.
var capabilities = []struct {
	bit   uint
	name  string
	needs string
}{
	{12, "CAP_NET_ADMIN", "interfaces, routes and programs at them"},
	{21, "CAP_SYS_ADMIN", "namespaces, mounts and programs at the root cgroup"},
	{39, "CAP_BPF", "loading programs"},
}

func permissions(m Machine) []Finding {
	status, _ := m.Read("/proc/self/status")
	var have uint64
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			have, _ = strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		}
	}
	var lack, cost []string
	for _, c := range capabilities {
		if have&(1<<c.bit) == 0 {
			lack, cost = append(lack, c.name), append(cost, c.needs)
		}
	}
	if lack == nil {
		return []Finding{{Area: "permissions", Name: "capabilities", State: Good, Found: "all that daemons need"}}
	}
	return []Finding{{"permissions", "capabilities", Missing, "without " + strings.Join(lack, ", "),
		"no " + strings.Join(cost, "; no "), "run as root (sudo scaffold doctor); in a container, grant them"}}
}

func kernel(m Machine) []Finding {
	release, _ := m.Read("/proc/sys/kernel/osrelease")
	findings := append([]Finding{floor(release)}, groups(m, release)...)
	for _, f := range m.Features() {
		found := Finding{Area: "kernel", Name: f.Name, State: Good, Found: "on"}
		if f.Err != nil {
			found.State, found.Found, found.Cost = Note, "off: "+oneLine(f.Err), f.Cost
			found.Do = "Linux " + f.Since + " or later has it"
			if f.Needed {
				found.State = Missing
			}
			if errors.Is(f.Err, fs.ErrPermission) {
				found.Found, found.Do = "not known: permission denied", "run as root"
			}
		}
		findings = append(findings, found)
	}
	return findings
}

// The oldest kernel that the tests run on (docs/kernels.md). An older one may have all features, and its verifier
// may still refuse a program.
const floorMajor, floorMinor = 6, 1

func floor(release string) Finding {
	f := Finding{Area: "kernel", Name: "release", State: Good, Found: release}
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n == 2 && (major < floorMajor || major == floorMajor && minor < floorMinor) {
		f.State = Note
		f.Cost = fmt.Sprintf("older than %d.%d, the oldest that the tests run on: programs may not load", floorMajor, floorMinor)
		f.Do = fmt.Sprintf("take Linux %d.%d or later", floorMajor, floorMinor)
	}
	return f
}

// groups finds kernels that schedule sessions as groups and starve what is outside.
func groups(m Machine, release string) []Finding {
	on, _ := m.Read(priority.Groups)
	if on != "1" {
		return nil
	}
	f := Finding{Area: "kernel", Name: "scheduler", State: Good, Found: "weighs sessions"}
	if priority.GroupsStarve(release) {
		f.State = Note
		f.Cost = "where programs wake each other thousands of times a second and all processors are busy, others get none for seconds, the kernel's own threads too, and connections stand still (seen on 6.18.44)"
		f.Do = "sysctl -w kernel.sched_autogroup_enabled=0, or Linux 6.18.45 or later"
	}
	return []Finding{f}
}

func oneLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	if len(first) > 120 {
		first = first[:120] + "…"
	}
	return first
}

// hierarchy finds where cgroup v2 is and whether this process sees the root of the machine's.
func hierarchy(m Machine) []Finding {
	const area, name = "kernel", "cgroup v2"
	table, _ := m.Read(cgroups.MountInfo)
	switch whole, part := cgroups.Find(table); {
	case whole != "":
		return []Finding{{Area: area, Name: name, State: Good, Found: "mounted at " + whole}}
	case part != "":
		return []Finding{{area, name, Note, fmt.Sprintf("%s shows a part of the tree", part),
			"programs outside that part are not seen to listen", "give the container the host's cgroup namespace"}}
	}
	return []Finding{{area, name, Note, "not mounted here", "scaffold mounts it for itself; scaffold lab cannot group its processes",
		"mount -t cgroup2 none /sys/fs/cgroup/unified"}}
}
