package routerd

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/linux/priority"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

const (
	probeBuffer   = 4 << 20 // bytes of receive buffer: answers of thousands of hosts
	probePriority = 1       // SCHED_FIFO; above all ordinary work, below the kernel's own threads
)

// A prober sends PROBEs from a thread of its own, so that neither the daemon's work nor a busy
// machine delays the rounds.
type prober struct {
	fd     int
	every  time.Duration
	report func(changes []liveness.Change, quit <-chan struct{}) // called from the prober's thread alone
	quit   chan struct{}                                         // closed by Close
	done   chan struct{}

	mu     sync.Mutex // guards what follows
	probes *liveness.Probes
}

// newProber sends from own's address until Close; it needs the router's network namespace.
func newProber(own sid.Locator, every time.Duration, l liveness.Limits, report func([]liveness.Change, <-chan struct{}), log *slog.Logger) (*prober, error) {
	fd, err := probeSocket(own)
	if err != nil {
		return nil, fmt.Errorf("open the probe socket at %v: %w", own.Host(), err)
	}
	p := &prober{fd: fd, every: every, report: report,
		quit: make(chan struct{}), done: make(chan struct{}), probes: liveness.New(l)}
	go p.run(log)
	return p, nil
}

func probeSocket(own sid.Locator) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, probeBuffer) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, probeBuffer) //nolint:errcheck // as much as may be
	}
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, 6) //nolint:errcheck // above bulk where queues are
	if err := unix.Bind(fd, &unix.SockaddrInet6{Addr: own.Host().As16()}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// do changes what is probed; the caller reports the changes that follow.
func (p *prober) do(f func(*liveness.Probes) []liveness.Change) []liveness.Change {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f(p.probes)
}

func (p *prober) add(l sid.Locator, port string) {
	p.do(func(ps *liveness.Probes) []liveness.Change { ps.Add(l, port, rand.Uint64()); return nil })
}

func (p *prober) remove(l sid.Locator) {
	p.do(func(ps *liveness.Probes) []liveness.Change { ps.Remove(l); return nil })
}

func (p *prober) carrier(port string, on bool) []liveness.Change {
	return p.do(func(ps *liveness.Probes) []liveness.Change { return ps.Carrier(port, on) })
}

// tell is for the prober's own thread.
func (p *prober) tell(changes []liveness.Change) {
	if len(changes) > 0 {
		p.report(changes, p.quit)
	}
}

// Close ends the prober's thread.
func (p *prober) Close() {
	close(p.quit)
	<-p.done
	unix.Close(p.fd)
}

// run is the prober's thread. It is never unlocked: its scheduling class must not reach others.
func (p *prober) run(log *slog.Logger) {
	defer close(p.done)
	runtime.LockOSThread()
	if err := hurry(); err != nil {
		log.Warn("probes are sent at ordinary priority: a busy machine may delay them, which suspects nobody", "error", err)
	}
	next := time.Now()
	for {
		next = next.Add(p.every)
		if now := time.Now(); next.Before(now) {
			next = now // rounds that did not happen are not made up for
		}
		p.wait(next)
		select {
		case <-p.quit:
			return
		default:
		}
		p.tell(p.do(func(ps *liveness.Probes) []liveness.Change { return ps.Turn(p.send) }))
	}
}

// hurry asks for real-time scheduling of this thread, or else for the best nice value.
func hurry() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: probePriority}
	err := unix.SchedSetAttr(0, &attr, 0)
	if err == nil {
		return nil
	}
	if priority.Thread(priority.Most) == nil {
		return nil
	}
	return err
}

// wait takes answers as they come until the time of the next round, and at least once: the socket is
// empty when a round begins to count.
func (p *prober) wait(until time.Time) {
	for {
		p.drain()
		left := time.Until(until)
		if left <= 0 {
			return
		}
		ts := unix.NsecToTimespec(left.Nanoseconds())
		unix.Ppoll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, &ts, nil) //nolint:errcheck // a signal ends it: look again
	}
}

func (p *prober) drain() {
	var buf [wire.HeaderLen + 1]byte
	for {
		n, from, err := unix.Recvfrom(p.fd, buf[:], 0)
		if err != nil {
			return // EAGAIN: it is empty
		}
		src, ok := from.(*unix.SockaddrInet6)
		t, h, err := wire.ParseHeader(buf[:n])
		if !ok || err != nil || t != wire.TypeProbeAck || src.Port != sid.Port {
			continue
		}
		a := netip.AddrFrom16(src.Addr)
		if sid.Low(a) == sid.HostSuffix {
			p.tell(p.do(func(ps *liveness.Probes) []liveness.Change { return ps.Answered(sid.LocatorOf(a), h.Nonce) }))
		}
	}
}

// send sends one probe; what the network does not take is a probe that nobody answers.
func (p *prober) send(l sid.Locator, nonce uint64) {
	var buf [wire.HeaderLen]byte
	m := wire.Probe{Header: wire.Header{Nonce: nonce}}.Append(buf[:0])
	unix.Sendto(p.fd, m, unix.MSG_DONTWAIT, &unix.SockaddrInet6{Port: sid.Port, Addr: l.Host().As16()}) //nolint:errcheck // as above
}
