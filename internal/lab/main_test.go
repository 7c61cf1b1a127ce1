package lab_test

import (
	"os"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestMain makes the test binary the whole product as well: the labs of these tests start their
// daemons from it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	nstest.Main(m)
}
