package nstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// insideDisk tells a test's second self that it runs in a mount namespace of its own.
const insideDisk = "SCAFFOLD_TEST_DISK"

// Disk returns the directory of a small disk, or "" where the test is over for this process. A mount is a matter of the
// whole process, so the test runs itself again in a mount namespace made for it; the first self reports what the second
// one says.
func Disk(t *testing.T, size int) string {
	t.Helper()
	Root(t) // mounts a disk of its own
	if dir := os.Getenv(insideDisk); dir != "" {
		return dir
	}
	dir := t.TempDir()
	mount := fmt.Sprintf("mount --make-rprivate / && mount -t tmpfs -o size=%d scaffold %s && exec %s -test.run '^%s$' -test.v", size, dir, os.Args[0], t.Name())
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", mount)
	cmd.Env = append(os.Environ(), insideDisk+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in its own mount namespace: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	return ""
}

// Fill writes a file until the disk takes no more.
func Fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		return err
	}
	return nil
}
