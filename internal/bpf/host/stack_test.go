package host

import (
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
)

func TestFramesFitTheOldestKernel(t *testing.T) {
	spec, err := loadEdge()
	must(t, err)
	bpftest.FitStack(t, spec)
}
