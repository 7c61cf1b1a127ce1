package registry

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// How often accept queues are looked at: while there is load, and while there is none.
const (
	queueBusy = 50 * time.Millisecond
	QueueIdle = 100 * time.Millisecond
)

// missingLimit is how many looks a listener may be absent from before its end is taken for missed. The
// hooks tell of every end but the shutdown() of a listener from before them.
const missingLimit = 3

// LookAtQueues judges by their accept queues whether programs answer, and says when to look again.
func (r *Registry) LookAtQueues() time.Duration {
	if !r.listens() {
		return QueueIdle
	}
	looks, err := r.look()
	if err != nil {
		r.cfg.Log.Error("cannot look at accept queues", "error", err)
		return time.Second
	}
	next := QueueIdle
	now := time.Now()
	elapsed := now.Sub(r.looked)
	r.looked = now
	for t, i := range r.instances {
		if t.Proto != sid.TCP {
			continue
		}
		i.waiting, i.backlog = 0, 0
		for _, l := range looks[t] {
			i.waiting, i.backlog = i.waiting+l.Queue, i.backlog+l.Backlog
		}
		if i.waiting > 0 || i.flows > 0 {
			next = queueBusy
		}
		var names map[uint64]bool
		if i.waiting > 0 && i.queue.Curious() {
			names = r.unaccepted(t)
			r.programs.watch(looks[t], elapsed)
		}
		r.programs.meet(looks[t])
		lengths := make(map[uint64]serving.Length, len(looks[t]))
		for cookie, l := range looks[t] {
			lengths[cookie] = l.Length
		}
		if stuck := i.queue.Look(elapsed, lengths, names); stuck != i.stuck {
			i.stuck, r.dirty = stuck, true
			r.fit(t, i)
		}
	}
	r.programs.endLook()
	return next
}

// A listenerLook is a sample of one listener.
type listenerLook struct {
	serving.Length
	inode uint32
}

// listens reports whether any TCP port is served.
func (r *Registry) listens() bool {
	for t := range r.instances {
		if t.Proto == sid.TCP {
			return true
		}
	}
	return false
}

// look samples the queues of each triple's listeners.
func (r *Registry) look() (map[sid.Triple]map[uint64]*listenerLook, error) {
	looks, seen := map[sid.Triple]map[uint64]*listenerLook{}, map[uint64]bool{}
	err := r.cfg.Namespaces.Each(sid.TCP, sockets.StateListen, 0, func(s sockets.DiagSocket) {
		if t, ok := r.sockets.Triple(s.Cookie); ok {
			if looks[t] == nil {
				looks[t] = map[uint64]*listenerLook{}
			}
			looks[t][s.Cookie] = &listenerLook{serving.Length{Queue: s.Queue, Backlog: s.Backlog}, s.Inode}
			seen[s.Cookie] = true
		}
	})
	if err == nil {
		r.forgetMissing(seen)
	}
	return looks, err
}

func (r *Registry) forgetMissing(seen map[uint64]bool) {
	var ended []uint64
	for t := range r.instances {
		if t.Proto != sid.TCP {
			continue
		}
		r.sockets.Cookies(t, func(cookie uint64, _ serving.Owner) {
			if seen[cookie] {
				delete(r.missing, cookie)
			} else if r.missing[cookie]++; r.missing[cookie] >= missingLimit {
				ended = append(ended, cookie)
			}
		})
	}
	for _, cookie := range ended {
		r.event(0, sockets.Event{Kind: sockets.Unregister, Cookie: cookie, Why: sockets.Shutdown})
	}
}

// unaccepted names the connections that nobody has accepted: they belong to no file yet.
func (r *Registry) unaccepted(t sid.Triple) map[uint64]bool {
	local := netip.AddrPortFrom(r.edge.Space().ServiceAddr(t.Service), t.Port)
	waiting := map[uint64]bool{}
	err := r.cfg.Namespaces.Each(sid.TCP, sockets.StateEstablished|sockets.StateCloseWait, t.Port, func(s sockets.DiagSocket) {
		if s.Inode == 0 && s.Local == local {
			waiting[s.Cookie] = true
		}
	})
	if err != nil {
		return nil
	}
	return waiting
}
