package sockets

import (
	"os"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// scriptEnv makes the test binary play an unmodified program instead, see script_test.go.
const scriptEnv = "SCAFFOLD_SOCKETS_SCRIPT"

func TestMain(m *testing.M) {
	if os.Getenv(scriptEnv) != "" {
		playScript()
		return
	}
	nstest.Main(m)
}
