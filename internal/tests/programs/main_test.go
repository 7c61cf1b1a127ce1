package programs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/programs/quic"
)

// self is this test binary, which is also the whole product: the lab starts its daemons from it.
const self = "/proc/self/exe"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "quic" {
		os.Exit(quicMain())
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin") // where Debian keeps servers
	nstest.MainAround(m, func(run func() int) int {
		code := run()
		if err := takeDown(); err != nil {
			fmt.Fprintln(os.Stderr, "programs: take the lab down:", err)
			return 1
		}
		return code
	})
}

// quicMain is this binary as a program that talks QUIC.
func quicMain() int {
	if err := quic.Main(os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quic:", err)
		return 1
	}
	return 0
}
