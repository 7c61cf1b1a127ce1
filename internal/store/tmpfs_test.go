package store

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"scaffold.dev/scaffold/internal/nstest"
)

// inside tells the test's second self that it runs in a mount namespace of its own.
const inside = "SCAFFOLD_STORE_TEST_DISK"

// tmpfs returns a small disk, or nothing where the test is over for this process. A mount is a matter of the whole process, so the test runs itself
// again in a mount namespace made for it; the first self reports what the second one says.
func tmpfs(t *testing.T, size int) string {
	t.Helper()
	nstest.Root(t) // mounts a disk of its own
	if dir := os.Getenv(inside); dir != "" {
		return dir
	}
	dir := t.TempDir()
	mount := fmt.Sprintf("mount --make-rprivate / && mount -t tmpfs -o size=%d scaffold %s && exec %s -test.run '^%s$' -test.v", size, dir, os.Args[0], t.Name())
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", mount)
	cmd.Env = append(os.Environ(), inside+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in its own mount namespace: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	return ""
}
