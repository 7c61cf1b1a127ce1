package ends

import (
	"os"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) {
	if os.Getenv(agentEnv) != "" {
		os.Exit(runAgent())
	}
	nstest.Main(m)
}
