package emud

import (
	"testing"

	"scaffold.dev/scaffold/internal/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }
