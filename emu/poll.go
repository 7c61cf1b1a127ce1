package emu

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A poller waits for frames, for questions and for a moment, whichever comes first.
type poller struct {
	epoll  int
	event  int // eventfd: something was asked
	events [64]unix.EpollEvent
}

// asked stands for the eventfd among the numbers of flows.
const asked = -1

func (p *poller) open() (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(p.epoll)
		return fmt.Errorf("eventfd: %w", err)
	}
	return p.watch(p.event, asked)
}

func (p *poller) watch(fd, number int) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(number)})
}

// forget is for an interface that somebody removed: it would be ready for ever.
func (p *poller) forget(fd int) { unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil) } //nolint:errcheck // it was added

func (p *poller) wake() { unix.Write(p.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) } //nolint:errcheck // full: it is awake

// woken takes the wish to wake back.
func (p *poller) woken() {
	var b [8]byte
	unix.RawSyscall(unix.SYS_READ, uintptr(p.event), uintptr(unsafe.Pointer(&b[0])), 8) //nolint:errcheck // empty: it has been taken back
}

// wait returns at most d from now with what is ready. A signal may end it early: the caller looks at
// the clock. It bypasses the Go scheduler, which may give a thread back late.
func (p *poller) wait(d time.Duration) []unix.EpollEvent {
	limit := unix.NsecToTimespec(int64(d))
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(unsafe.Pointer(&limit)), 0, 0)
	if e != 0 {
		return nil
	}
	return p.events[:n]
}

func (p *poller) close() {
	unix.Close(p.epoll)
	unix.Close(p.event)
}
