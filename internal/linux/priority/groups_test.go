package priority_test

import (
	"testing"

	"scaffold.dev/scaffold/internal/linux/priority"
)

func TestKernelsWhoseGroupsStarveOthersAreKnown(t *testing.T) {
	for release, want := range map[string]bool{
		"6.1.0-50-amd64": false, "6.11.11": false, "6.12.0": true, "6.12.74+deb13-amd64": true, "6.17": true, "6.18.0": true,
		"6.18.44-cloud": true, "6.18.45": false, "6.18.52": false, "6.19.3": true, "7.0.1": true, "7.1.0": false, "10.0": false, "": false,
		"something": false,
	} {
		if got := priority.GroupsStarve(release); got != want {
			t.Errorf("%q: %v, want %v", release, got, want)
		}
	}
}
