package router

import (
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
)

func TestFramesFitTheOldestKernel(t *testing.T) {
	spec, err := loadResolve()
	if err != nil {
		t.Fatal(err)
	}
	bpftest.FitStack(t, spec)
}
