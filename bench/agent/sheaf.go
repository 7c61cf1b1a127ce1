package agent

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sheaf is packets that go out by one system call.
type sheaf struct {
	frames [][]byte
	iov    [stormAHand]unix.Iovec
	all    [stormAHand]mmsghdr
}

func newSheaf(t *stormTemplate) *sheaf {
	h := &sheaf{}
	for i := range h.all {
		h.frames = append(h.frames, slices.Clone(t.frame))
		h.iov[i] = unix.Iovec{Base: &h.frames[i][0]}
		h.iov[i].SetLen(len(t.frame))
		h.all[i].Iov = &h.iov[i]
		h.all[i].SetIovlen(1)
	}
	return h
}

func (h *sheaf) send(fd int) (int, unix.Errno) {
	n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&h.all)), stormAHand, 0, 0, 0)
	runtime.KeepAlive(h)
	return int(n), e
}
