package sockets

import (
	"testing"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestFramesFitTheOldestKernel(t *testing.T) {
	for _, load := range []func() (*ebpf.CollectionSpec, error){loadHooks, loadRewrite} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		bpftest.FitStack(t, spec)
	}
}

func TestProgramsLoadQuickly(t *testing.T) {
	nstest.Root(t)
	for _, load := range []func() (*ebpf.CollectionSpec, error){loadHooks, loadRewrite} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		bpftest.LoadQuickly(t, spec)
	}
}
