package nstest

import (
	"os"
	"testing"
)

// RootEnv is the variable that promises root: with it set to 1 a test that needs root fails instead
// of being skipped.
const RootEnv = "SCAFFOLD_ROOT_TESTS"

// Root ends a test that needs root and runs without: it fails where root was promised, and skips
// elsewhere.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv(RootEnv) == "1" {
		t.Fatalf("%s=1 promises root, but the tests run as uid %d", RootEnv, os.Geteuid())
	}
	t.Skip("needs root")
}
