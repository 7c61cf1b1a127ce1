package bpftest

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
)

// mostVerified is how many instructions the verifier may walk through until it accepts one program; every daemon has several
// loaded before it serves. On Linux 6.18 the most are 48,731 (edge_egress). One that inlined what many ways lead to had
// 277,000 and took 382 ms, and of a minute of all tests a third of the processor's samples were the verifier's.
const mostVerified = 75_000

// LoadQuickly fails for programs that the verifier of this kernel takes long to accept. It needs root.
func LoadQuickly(t testing.TB, spec *ebpf.CollectionSpec) {
	t.Helper()
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	for name, p := range loaded.Programs {
		info, err := p.Info()
		if err != nil {
			t.Fatal(err)
		}
		n, ok := info.VerifiedInstructions() // since Linux 5.16
		t.Logf("program %s: the verifier walks through %d instructions", name, n)
		if ok && n > mostVerified {
			t.Errorf("program %s: the verifier walks through %d instructions, at most %d: make what is called on many ways a global function (__noinline, not static), which is verified once", name, n, mostVerified)
		}
	}
}
