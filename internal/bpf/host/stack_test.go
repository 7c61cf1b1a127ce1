package host

import (
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestFramesFitTheOldestKernel(t *testing.T) {
	spec, err := loadEdge()
	must(t, err)
	bpftest.FitStack(t, spec)
}

func TestProgramsLoadQuickly(t *testing.T) {
	nstest.Root(t)
	spec, err := loadEdge()
	must(t, err)
	bpftest.LoadQuickly(t, spec)
}
