package emu

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Start begins to move packets on the machine's clock. The process should have at least two processors of the Go
// scheduler more than shards.
func (n *Net) Start() error {
	if n.opt.Virtual {
		return fmt.Errorf("the network has virtual time; expected Run in place of Start")
	}
	if n.running {
		return ErrRunning
	}
	if err := n.place(); err != nil {
		return err
	}
	n.running = true
	base := time.Now()
	for _, s := range n.shards {
		s.base = base
		for i, e := range s.edges {
			if err := s.poll.watch(e.device.fd(), i); err != nil {
				return fmt.Errorf("interface %s: wait for frames: %w", e.end.Dev, err)
			}
		}
	}
	for _, s := range n.shards {
		s.started = true
		go s.work()
	}
	return nil
}

// work moves packets until the network is closed. It has its thread for itself.
func (s *shard) work() {
	runtime.LockOSThread() // and never unlocked: its scheduling is not fit for others
	defer close(s.gone)
	s.pace.begin()
	s.begin()
	for looked := s.clock(); !s.stop; {
		s.now = s.clock()
		s.collect()
		next := s.run()
		s.now = s.clock()
		if pause := s.pace.rest(s.now); pause > 0 {
			s.pauses++
			nap(pause)
			s.now = s.clock()
		}
		wait := s.sleep(next)
		ready := s.poll.wait(wait)
		s.asleep.Store(0)
		before := s.now
		s.turns.add(before - looked)
		s.now = s.clock()
		looked = s.now
		s.pace.waited(before, s.now, wait)
		for _, e := range ready {
			if e.Fd == asked {
				s.poll.woken()
				s.answer()
				continue
			}
			s.now = s.clock()
			s.edges[e.Fd].receive(s)
		}
	}
}

// sleep is how long to wait for the next moment, and tells other shards so.
func (s *shard) sleep(next time.Duration) time.Duration {
	wait := s.pace.sleep(min(next, s.now+time.Hour) - s.now)
	if len(s.in) == 0 || wait == 0 {
		return wait
	}
	s.asleep.Store(int64(s.now + wait))
	if s.waiting() {
		return 0
	}
	return wait
}

// nap sleeps whatever comes. A signal may end it early, which does no harm.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&t)), 0, 0, 0)
}
