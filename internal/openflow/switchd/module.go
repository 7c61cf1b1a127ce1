package switchd

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"scaffold.dev/scaffold/controller"
)

// A module is one that runs: what waits for it, and the goroutine that tells it. To the module it is the
// Network.
type module struct {
	host *modules
	of   owner
	name string
	code controller.Module

	packets, dropped, refused counter

	mu       sync.Mutex
	stopped  bool
	began    time.Time   // of the call that is going on; zero: none is
	watch    *time.Timer // fires when a call takes too long
	switches []*feed[controller.Switch]
	hosts    []*feed[controller.Host]
	held     []*feed[heldBy]
	expired  []*feed[expiredAt]
	punted   []func()
	timers   []*timer
	reports  *rate.Limiter
	wake     chan struct{}
	quit     chan struct{} // closed when it is stopped
}

// A timer is what Every asked for. due is merged: a call that is late is not made up for.
type timer struct {
	f    func()
	due  bool
	tick *time.Timer
}

func newModule(host *modules, of owner, name string, code controller.Module) *module {
	return &module{reports: rate.NewLimiter(reportsASec, reportBurst), host: host, of: of, name: name, code: code,
		wake: make(chan struct{}, 1), quit: make(chan struct{})}
}

// run is the life of the module. It does not wait for a call that hangs.
func (m *module) run(ctx context.Context) {
	ended := make(chan struct{})
	go func() { // ends with quit, or with the call that hangs, if that ever does
		defer close(ended)
		m.live()
	}()
	select {
	case <-ctx.Done():
		if !m.end() {
			return
		}
		select { // a call that goes on has as long as any
		case <-ended:
		case <-time.After(m.host.patience):
		}
	case <-m.quit:
	}
}

func (m *module) live() {
	if !m.call(m.start) {
		return
	}
	for {
		for f := m.next(); f != nil; f = m.next() {
			if !m.call(f) {
				return
			}
		}
		select {
		case <-m.wake:
		case <-m.quit:
			return
		}
	}
}

func (m *module) start() {
	if err := m.code.Start(m); err != nil {
		m.stop("it could not start: " + err.Error())
		return
	}
	if m.of >= ownOthers && !m.isStopped() {
		m.host.events.event("module.start", m.name, "module started")
	}
}

// next is what to call now: news before packets, of which there may be many.
func (m *module) next() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.switches {
		if f := q.take(); f != nil {
			return f
		}
	}
	for _, q := range m.hosts {
		if f := q.take(); f != nil {
			return f
		}
	}
	for _, q := range m.held {
		if f := q.take(); f != nil {
			return f
		}
	}
	for _, q := range m.expired {
		if f := q.take(); f != nil {
			return f
		}
	}
	for _, t := range m.timers {
		if t.due {
			t.due = false
			return t.f
		}
	}
	if len(m.punted) == 0 {
		return nil
	}
	f := m.punted[0]
	m.punted[0], m.punted = nil, m.punted[1:]
	return f
}

// call runs the module's code and says whether it goes on. What it does wrong stops it.
func (m *module) call(f func()) (goesOn bool) {
	if !m.enter() {
		return false
	}
	returned := false
	defer func() {
		m.leave()
		if returned {
			goesOn = !m.isStopped()
			return
		}
		why := "it ended its goroutine"
		if r := recover(); r != nil {
			why = fmt.Sprintf("panic: %v", r)
		}
		m.host.log.Error("module panicked", "module", m.name, "why", why, "stack", string(debug.Stack()))
		m.stop(why + " at " + guilty())
	}()
	f()
	returned = true
	return
}

// guilty is where the panic was that is being recovered from: the first frame behind the runtime's.
func guilty() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") || !more {
			return fmt.Sprintf("%s (%s:%d)", f.Function, filepath.Base(f.File), f.Line)
		}
	}
}

func (m *module) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return false
	}
	m.began = time.Now()
	if m.watch == nil {
		m.watch = time.AfterFunc(m.host.patience, m.late)
	} else {
		m.watch.Reset(m.host.patience)
	}
	return true
}

func (m *module) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began = time.Time{}
	m.watch.Stop()
}

// late is called when a call may have taken too long. The timer of one that ended meanwhile may still come.
func (m *module) late() {
	m.mu.Lock()
	hangs := !m.began.IsZero() && time.Since(m.began) >= m.host.patience
	m.mu.Unlock()
	if hangs {
		m.stop(fmt.Sprintf("it hangs: a call takes more than %v", m.host.patience))
	}
}

// stop ends the module, removes what it put into switches, and tells why. The call that is going on cannot be
// ended; whatever it does from here on is refused.
func (m *module) stop(why string) {
	if !m.end() {
		return
	}
	m.host.complain(m.host.flows.forget(m.of))
	m.host.events.event("module.stopped", m.name, "module stopped, its rules are removed: "+why)
}

// end lets go of everything that waits for the module, and reports whether it was not stopped before.
func (m *module) end() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return false
	}
	m.stopped = true
	for _, t := range m.timers {
		t.tick.Stop()
	}
	m.switches, m.hosts, m.held, m.expired, m.punted, m.timers = nil, nil, nil, nil, nil, nil
	close(m.quit)
	return true
}

func (m *module) isStopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopped
}

// rouse has the module's goroutine look for what there is to do. The caller has the lock.
func (m *module) rouse() {
	select {
	case m.wake <- struct{}{}:
	default: // it is awake
	}
}

func (m *module) hearSwitch(s controller.Switch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.switches {
		q.put(s.Name, s)
	}
	m.rouse()
}

func (m *module) hearHost(h controller.Host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.hosts {
		q.put(h.Name, h)
	}
	m.rouse()
}

// A heldBy is a switch that has what it should, by so many calls of SetFlows.
type heldBy struct {
	at    string
	calls uint64
}

func (m *module) hearHeld(at string, calls uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.held {
		q.put(at, heldBy{at, calls})
	}
	m.rouse()
}

// expiredAt are flows that a switch has taken out by itself.
type expiredAt struct {
	at   string
	gone []controller.Flow
}

func (m *module) hearExpired(at string, f controller.Flow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.expired {
		q.put(at, expiredAt{at, append(q.latest[at].gone, f)})
	}
	m.rouse()
}

func (m *module) hearPacket(s *subscriber, p controller.Packet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	if len(m.punted) >= packetQueue {
		m.dropped.Add(1)
		return
	}
	m.packets.Add(1)
	m.punted = append(m.punted, func() { s.to(p) })
	m.rouse()
}
