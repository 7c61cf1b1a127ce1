package emu

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch is how many frames of one interface are read before others have their turn.
const batch = 32

// run moves frames until the worker is closed. It has its thread for itself.
func (w *worker) run() {
	runtime.LockOSThread() // and never unlocked: its scheduling is not fit for others
	defer close(w.gone)
	w.pace.begin()
	for !w.stop {
		now, next := w.deliver()
		if pause := w.pace.rest(now); pause > 0 {
			nap(pause)
			now = w.now()
		}
		wait := w.pace.sleep(next - now)
		ready := w.poll.wait(wait)
		w.pace.waited(now, w.now(), wait)
		for _, e := range ready {
			if e.Fd == asked {
				w.poll.woken()
				w.answer()
				continue
			}
			w.receive(w.flows[e.Fd])
		}
	}
}

// nap sleeps whatever comes. A signal may end it early, which does no harm.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&t)), 0, 0, 0)
}

// deliver lets out what is due, and returns the time and when the next is due.
func (w *worker) deliver() (now, next time.Duration) {
	now = w.now()
	next = now + time.Hour
	for _, f := range w.flows {
		for {
			due, ok := f.line.Due()
			if !ok {
				break
			}
			if due > now {
				if now = w.now(); due > now { // writing takes time
					next = min(next, due)
					break
				}
			}
			p, _ := f.line.Take(now)
			f.late.add(w.now() - p.Due)
			w.emit(f, p)
		}
	}
	return w.now(), next
}

// emit writes a part to the far interface.
func (w *worker) emit(f *flow, p Part) {
	frame, b := w.arena.frames[p.ID], w.arena.bytes(p.ID)
	var e unix.Errno
	if p.Count == frame.Count {
		e = f.out.write(b)
	} else {
		header, payload := cut(w.head[:], b, frame, p)
		w.iov[0].Base, w.iov[1].Base = &header[0], &payload[0]
		w.iov[0].SetLen(len(header))
		w.iov[1].SetLen(len(payload))
		e = f.out.writev(&w.iov)
	}
	if e != 0 {
		f.refused++
	}
	w.arena.drop(p.ID, 1)
}

// receive reads what waits at the near interface.
func (w *worker) receive(f *flow) {
	for range batch {
		b := w.arena.slot(w.spare)
		n, e := f.in.read(b)
		switch {
		case e == unix.EAGAIN:
			return
		case e == unix.EINTR:
			continue
		case e != 0: // somebody removed the interface
			w.poll.forget(f.in.fd)
			return
		case n > vnetLen+etherLen:
			w.send(f, b[:n])
		}
	}
}

// send gives the frame in the spare slot to the line.
func (w *worker) send(f *flow, b []byte) {
	frame, id, c := describe(b), w.spare, 1
	if len(b) <= smallFrame {
		c = 0
	}
	free, ok := w.arena.take(c)
	if !ok {
		f.starved++
		return
	}
	if c == 0 {
		id = free
		copy(w.arena.slot(id), b)
	} else {
		w.spare = free
	}
	frame.ID = id
	w.arena.frames[id] = frame
	parts := f.line.Send(w.now(), frame)
	w.arena.refs[id] = int32(parts)
	if parts == 0 {
		w.arena.drop(id, 0)
	}
}
