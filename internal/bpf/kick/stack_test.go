package kick

import (
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
)

func TestFramesFitTheOldestKernel(t *testing.T) {
	spec, err := loadDump()
	if err != nil {
		t.Fatal(err)
	}
	bpftest.FitStack(t, spec)
}
