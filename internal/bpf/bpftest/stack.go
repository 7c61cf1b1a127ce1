package bpftest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// What Linux 6.1 gives a program and all functions that are under way in it, and what it rounds each frame up to. Later
// kernels round less: a program that has no room there is loaded here all the same.
const (
	stackRoom  = 512
	frameRound = 32
)

// FitStack fails for programs whose frames are too large together for the oldest kernel that Scaffold runs on.
func FitStack(t testing.TB, spec *ebpf.CollectionSpec) {
	t.Helper()
	for name, p := range spec.Programs {
		frames := framesOf(p.Instructions)
		if size, chain := frames.deepest(p.Instructions[0].Symbol()); size > stackRoom {
			t.Errorf("program %s needs %d bytes of stack, Linux 6.1 gives %d: %s", name, size, stackRoom, strings.Join(chain, " > "))
		}
	}
}

// A frame is what a function of a program takes of the stack, and whom it calls.
type frame struct {
	size  int
	calls []string
}

type frames map[string]*frame

// framesOf measures as the verifier does: the lowest byte below the frame pointer that is touched or pointed at.
func framesOf(insns asm.Instructions) frames {
	all, f := frames{}, &frame{}
	var holds [11]bool // registers that hold the frame pointer
	for _, i := range insns {
		if s := i.Symbol(); s != "" {
			f, holds = &frame{}, [11]bool{}
			all[s] = f
		}
		op := i.OpCode
		switch {
		case i.IsFunctionReference():
			f.calls = append(f.calls, i.Reference())
		case op.Class().IsLoad() && i.Src == asm.R10:
			f.size = max(f.size, -int(i.Offset))
		case op.Class().IsStore() && i.Dst == asm.R10:
			f.size = max(f.size, -int(i.Offset))
		case op.Class() == asm.ALU64Class && op.ALUOp() == asm.Add && op.Source() == asm.ImmSource && holds[i.Dst]:
			f.size = max(f.size, -int(i.Constant))
		}
		if !op.Class().IsStore() && !op.Class().IsJump() {
			holds[i.Dst] = op.Class() == asm.ALU64Class && op.ALUOp() == asm.Mov && op.Source() == asm.RegSource && i.Src == asm.R10
		}
	}
	return all
}

// deepest is the chain of calls that takes most.
func (all frames) deepest(name string) (size int, chain []string) {
	f := all[name]
	for _, called := range f.calls {
		if n, c := all.deepest(called); n > size {
			size, chain = n, c
		}
	}
	own := (max(f.size, 1) + frameRound - 1) / frameRound * frameRound
	return own + size, slices.Concat([]string{fmt.Sprintf("%s (%d)", name, f.size)}, chain)
}
