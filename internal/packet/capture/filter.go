package capture

import (
	"encoding/binary"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// Offsets of the addresses in an IPv6 header.
const (
	atSrc = 8
	atDst = 24
)

// whole is more than any packet has.
const whole = 1 << 18

// filter lets the kernel pass IPv6 packets from or to addresses of the network. It sees packets from
// their IP header on.
func filter(space sid.Space) ([]unix.SockFilter, error) {
	services, as := space.Services.Addr().As16(), space.AS.Addr().As16()
	serviceWord, asWord := binary.BigEndian.Uint32(services[:]), binary.BigEndian.Uint32(as[:])
	asRest := uint32(binary.BigEndian.Uint16(as[4:]))
	// The jumps count instructions: each address takes five, and the two verdicts are the last.
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 6, SkipFalse: 10},
		bpf.LoadAbsolute{Off: atSrc, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: serviceWord, SkipTrue: 9},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: asWord, SkipFalse: 2},
		bpf.LoadAbsolute{Off: atSrc + 4, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: asRest, SkipTrue: 6},
		bpf.LoadAbsolute{Off: atDst, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: serviceWord, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: asWord, SkipFalse: 2},
		bpf.LoadAbsolute{Off: atDst + 4, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: asRest, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: whole},
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, err
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}
