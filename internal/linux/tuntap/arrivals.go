package tuntap

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Arrivals know when each frame reached an interface, whenever it is read. The kernel notes it for no reader of a TAP,
// so a program of the interface does (TUNSETFILTEREBPF, Linux 4.16), in memory that this process shares: who stood
// still, or waited for a processor, finds out how long by the frames that he reads then.
//
// Frames are told apart by their number: the kernel's ring keeps their order.
type Arrivals struct {
	memory []byte
	notes  *notes
	read   uint64 // number of the frame that is read next
}

// Notes are what the program writes.
type notes struct {
	count uint64 // frames that came; changed by several processors at once
	at    [places]int64
}

// places is how many frames may wait unread: as many as the longest queue of an interface that is made here. It is a
// power of two.
const places = 8192

// NewArrivals has the arrival of each frame noted from now on. It needs the right to load programs (CAP_BPF).
func NewArrivals(fd int) (*Arrivals, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "arrivals", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(unsafe.Sizeof(notes{})), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE,
	})
	if err != nil {
		return nil, fmt.Errorf("memory for the arrival of frames: %w", err)
	}
	defer m.Close() // the program and the mapping hold it
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "arrivals", Type: ebpf.SocketFilter, License: "GPL", Instructions: note(m.FD())})
	if err != nil {
		return nil, fmt.Errorf("program that notes the arrival of frames: %w", err)
	}
	defer p.Close() // the interface holds it
	memory, err := unix.Mmap(m.FD(), 0, int(unsafe.Sizeof(notes{})), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("memory for the arrival of frames: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETFILTEREBPF, p.FD()); err != nil {
		return nil, errors.Join(fmt.Errorf("let a program note the arrival of frames: %w", err), unix.Munmap(memory))
	}
	return &Arrivals{memory: memory, notes: (*notes)(unsafe.Pointer(&memory[0]))}, nil
}

// note is the program: notes.at[notes.count++] = now. What it returns is how much of the frame is kept: all of it.
func note(fd int) asm.Instructions {
	const whole = 1 << 30
	take := asm.FetchAdd.Mem(asm.R1, asm.R2, asm.DWord, 0) // senders on several processors
	take.Constant = unix.BPF_FETCH                         // cilium/ebpf 0.22 forgets to encode it, and the number would be lost
	return asm.Instructions{
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(asm.R6, asm.R0),
		asm.LoadMapValue(asm.R1, fd, 0),
		asm.Mov.Imm(asm.R2, 1),
		take,
		asm.And.Imm(asm.R2, places-1),
		asm.LSh.Imm(asm.R2, 3),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.R1, int16(unsafe.Offsetof(notes{}.at)), asm.R6, asm.DWord),
		asm.Mov.Imm(asm.R0, whole),
		asm.Return(),
	}
}

// Next is when the frame that was read last reached the interface, in nanoseconds of CLOCK_MONOTONIC. It has to be
// called once for each frame. It may be off where frames were lost because nobody read them, until there is none left.
func (a *Arrivals) Next() int64 {
	at := atomic.LoadInt64(&a.notes.at[a.read&(places-1)])
	a.read++
	return at
}

// sending is longer than a frame takes from the program to the ring where it can be read.
const sending = 10_000_000

// Empty says that no frame waits to be read. Those that were noted and are not to be had any more were lost: the ring
// was full.
func (a *Arrivals) Empty(now int64) {
	came := atomic.LoadUint64(&a.notes.count)
	a.read = max(min(a.read, came), came-min(came, places))
	for a.read < came && atomic.LoadInt64(&a.notes.at[a.read&(places-1)]) < now-sending {
		a.read++
	}
}

// Close gives the memory back.
func (a *Arrivals) Close() { unix.Munmap(a.memory) } //nolint:errcheck // it was mapped
