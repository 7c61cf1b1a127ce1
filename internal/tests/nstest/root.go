package nstest

import (
	"os"
	"os/exec"
	"testing"
)

// RootEnv is the variable that promises root: with it set to 1 a test that needs root fails instead
// of being skipped. Set to 0 it asks for the tests that need no root alone, even of root.
const RootEnv = "SCAFFOLD_ROOT_TESTS"

// LongEnv asks, set to 1, for what takes minutes and shows no more than a shorter run of the same does every day: soaks,
// more orders, more rounds. `make test-long` sets it.
const LongEnv = "SCAFFOLD_LONG_TESTS"

// Long reports whether that was asked for. A test that is only slow makes a short run without it.
func Long() bool { return os.Getenv(LongEnv) == "1" }

// Root ends a test that needs root and runs without: it fails where root was promised, and skips
// elsewhere.
func Root(t testing.TB) {
	t.Helper()
	promised := os.Getenv(RootEnv)
	if promised == "0" {
		t.Skipf("%s=0 leaves out what needs root", RootEnv)
	}
	if os.Geteuid() == 0 {
		return
	}
	if promised == "1" {
		t.Fatalf("%s=1 promises root, but the tests run as uid %d", RootEnv, os.Geteuid())
	}
	t.Skip("needs root")
}

// Lacks ends a test for want of something that the build server has: it fails there (CI=true, as .ci/run says), and
// skips elsewhere.
func Lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("the build server has it: "+format, args...)
	}
	t.Skipf(format, args...)
}

// Program is the path of a program that a test needs, of a Debian package. Where it is missing the test fails if root
// was promised, for scripts/packages.sh was to install it, and skips elsewhere.
func Program(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv(RootEnv) == "1":
		t.Fatalf("%s is missing: scripts/packages.sh test installs it (Debian package %s)", name, pkg)
	default:
		t.Skipf("%s is missing: Debian package %s has it", name, pkg)
	}
	return path
}
