package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// largest is what a file in git may have: each clone gets it, and each version of it, for good. What is larger is made by
// a command, or is not ours.
const largest = 500_000

func TestNoTrackedFileIsLarge(t *testing.T) {
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root(t), "ls-files", "-z").Output()
	if err != nil {
		nstest.Lacks(t, "no git here: this tree is an archive")
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(names) < 1000 {
		t.Errorf("git tracks %d files: does this test still see them?", len(names))
	}
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(root(t), name)); err == nil && info.Size() > largest { // one that was deleted goes with the commit
			t.Errorf("%s has %d bytes, more than %d: let a command make it, or cut it", name, info.Size(), largest)
		}
	}
}
