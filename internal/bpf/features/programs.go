package features

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// pass returns a program that does nothing but return verdict.
func pass(kind ebpf.ProgramType, at ebpf.AttachType, verdict int32) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "probe", Type: kind, AttachType: at, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()},
	})
}

func load(kind ebpf.ProgramType, at ebpf.AttachType) error {
	p, err := pass(kind, at, 1)
	if err != nil {
		return err
	}
	return p.Close()
}

func tc() error { return load(ebpf.SchedCLS, ebpf.AttachNone) }

// tcx asks for a link on an interface that cannot exist: a kernel with tcx says so, one without does
// not know the question.
func tcx() error {
	p, err := pass(ebpf.SchedCLS, ebpf.AttachNone, 0)
	if err != nil {
		return err
	}
	defer p.Close()
	l, err := link.AttachTCX(link.TCXOptions{Interface: 1 << 30, Program: p, Attach: ebpf.AttachTCXIngress})
	if err == nil {
		return l.Close()
	}
	if errors.Is(err, ebpf.ErrNotSupported) {
		return err
	}
	return nil
}

func kernelTypes() error {
	_, err := btf.LoadKernelSpec()
	return err
}

func release() error { return load(ebpf.CGroupSock, ebpf.AttachCgroupInetSockRelease) }

// rootAttach hangs a program that allows everything on the root cgroup for a moment.
func rootAttach() error {
	root, err := cgroups.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	p, err := pass(ebpf.CGroupSock, ebpf.AttachCGroupInet6PostBind, 1)
	if err != nil {
		return err
	}
	defer p.Close()
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: int(root.Fd()), Program: p, Attach: ebpf.AttachCGroupInet6PostBind})
	if err != nil {
		return err
	}
	return l.Close()
}

func cookie() error {
	return errors.Join(features.HaveProgramHelper(ebpf.CGroupSock, asm.FnGetNetnsCookie),
		features.HaveProgramHelper(ebpf.CGroupSockAddr, asm.FnGetNetnsCookie))
}

func task() error { return features.HaveProgramHelper(ebpf.CGroupSock, asm.FnGetCurrentTaskBtf) }

// callable calls a kernel function with arguments that the verifier must refuse: a kernel that lets tc
// programs call it complains of the arguments, another of the call.
func callable(name string) error {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return err
	}
	var function *btf.Func
	if err := types.TypeByName(name, &function); err != nil {
		return ebpf.ErrNotSupported
	}
	id, err := types.TypeID(function)
	if err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "probe", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, 0), asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 0), asm.Mov.Imm(asm.R4, 0),
			{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: int64(id)},
			asm.Mov.Imm(asm.R0, 0), asm.Return(),
		}})
	if err == nil {
		return p.Close()
	}
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) && !strings.Contains(fmt.Sprintf("%+v", refused), "not allowed") {
		return nil // it complained of the arguments
	}
	return err
}
