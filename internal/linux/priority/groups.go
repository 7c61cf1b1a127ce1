package priority

import "fmt"

// Groups is the setting by which the kernel schedules each session as a group, sched(7): 1 or 0; a kernel without has no such
// file.
const Groups = "/proc/sys/kernel/sched_autogroup_enabled"

// GroupsStarve says whether a kernel of this release may keep whatever is in no or in another group from the processor for
// seconds, its own threads too, while programs in one group wake each other thousands of times a second and others are busy.
//
// Each such wake changes the weight of the group, and these kernels place the running group anew each time by an average that
// already has it in it (Linux 6d71a9c61604, taken back by 101f3498b4bd; mended in 6.18.45). Seen on 6.18.44, where the
// kernel's own log told of a workqueue that was stuck for 35 s beside two busy loops and a lab (docs/testing.md). Others have
// seen it from 6.12 to 7.0.
func GroupsStarve(release string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(release, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return false
	}
	switch {
	case major == 6:
		return minor >= 12 && (minor != 18 || patch < 45)
	default:
		return major == 7 && minor == 0
	}
}
