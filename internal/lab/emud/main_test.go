package emud

import (
	"context"
	"fmt"
	"os"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// childEnv has this binary be an engine, with this configuration and socket as its arguments: tests stop its process.
const childEnv = "SCAFFOLD_EMUD_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := Run(context.Background(), nil, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	nstest.Main(m)
}
