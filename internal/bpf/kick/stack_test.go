package kick

import (
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestFramesFitTheOldestKernel(t *testing.T) {
	spec, err := loadDump()
	if err != nil {
		t.Fatal(err)
	}
	bpftest.FitStack(t, spec)
}

func TestProgramsLoadQuickly(t *testing.T) {
	nstest.Root(t)
	spec, err := loadDump()
	if err != nil {
		t.Fatal(err)
	}
	bpftest.LoadQuickly(t, spec)
}
