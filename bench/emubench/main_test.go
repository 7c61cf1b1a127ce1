package emubench

import (
	"fmt"
	"os"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// engineArg makes the test binary an engine.
const engineArg = "be-the-engine"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == engineArg {
		if err := RunEngine(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	nstest.Main(m)
}
