package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// self is this test binary, which is also the whole product: the lab starts its daemons from it.
const self = "/proc/self/exe"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin") // where Debian keeps servers
	nstest.MainAround(m, func(run func() int) int {
		code := run()
		removeBase()
		if err := errors.Join(takeDown(), takeMovingDown(), takeAttackedDown(), takeUnderlayDown()); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: take the lab down:", err)
			return 1
		}
		return code
	})
}
