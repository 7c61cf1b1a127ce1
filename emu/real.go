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
	base, zero, err := beginning()
	if err != nil {
		return err
	}
	n.zero = zero
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

// beginning is one moment by both clocks: time.Now has CLOCK_MONOTONIC, too, but does not tell. The number is never later
// than the time, since frames would then seem to come too early, and leave before their delay was over; it is the closest
// of a hundred, as a thread may lose its processor between the two.
func beginning() (base time.Time, zero int64, err error) {
	closest := int64(1 << 62)
	for range 100 {
		var before, after unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
			return base, 0, fmt.Errorf("clock: %w", err)
		}
		now := time.Now()
		unix.ClockGettime(unix.CLOCK_MONOTONIC, &after) //nolint:errcheck // it was there a moment ago
		if apart := after.Nano() - before.Nano(); apart < closest {
			base, zero, closest = now, before.Nano(), apart
		}
	}
	return base, zero, nil
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
		s.turns.Add(before-looked, 1)
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
	unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&t)), 0, 0, 0) //nolint:errcheck // a signal ended it
}
