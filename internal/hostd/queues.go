package hostd

import (
	"errors"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// How often accept queues are looked at: while there is load, and while there is none.
const (
	queueBusy = 50 * time.Millisecond
	queueIdle = 100 * time.Millisecond
)

// missingLimit is how many looks a listener may be absent from before its end is taken for missed. The
// hooks tell of every end but the shutdown() of a listener from before them.
const missingLimit = 3

// lookAtQueues judges by their accept queues whether programs answer, and says when to look again.
func (d *daemon) lookAtQueues() time.Duration {
	r := d.serving
	if !r.listens() {
		return queueIdle
	}
	looks, err := r.look()
	if err != nil {
		d.log.Error("cannot look at accept queues", "error", err)
		return time.Second
	}
	next := queueIdle
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
			names = d.waiting(t)
		}
		if stuck := i.queue.Look(looks[t], names); stuck != i.stuck {
			i.stuck, r.dirty = stuck, true
		}
	}
	return next
}

// listens reports whether any TCP port is served.
func (r *registry) listens() bool {
	for t := range r.instances {
		if t.Proto == sid.TCP {
			return true
		}
	}
	return false
}

// look samples the queues of each triple's listeners.
func (r *registry) look() (map[sid.Triple]map[uint64]serving.Length, error) {
	looks, seen := map[sid.Triple]map[uint64]serving.Length{}, map[uint64]bool{}
	err := r.d.eachSocket(sid.TCP, sockets.StateListen, 0, func(s sockets.DiagSocket) {
		if t, ok := r.sockets.Triple(s.Cookie); ok {
			if looks[t] == nil {
				looks[t] = map[uint64]serving.Length{}
			}
			looks[t][s.Cookie] = serving.Length{Queue: s.Queue, Backlog: s.Backlog}
			seen[s.Cookie] = true
		}
	})
	if err == nil {
		r.forgetMissing(seen)
	}
	return looks, err
}

func (r *registry) forgetMissing(seen map[uint64]bool) {
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

// eachSocket asks for the sockets of this host and of its guests.
func (d *daemon) eachSocket(proto sid.Proto, states uint32, port uint16, f func(sockets.DiagSocket)) error {
	err := d.diag.Each(proto, states, port, f)
	for _, g := range d.guests.up {
		err = errors.Join(err, g.diag.Each(proto, states, port, f))
	}
	return err
}

// waiting names the connections that nobody has accepted: they belong to no file yet.
func (d *daemon) waiting(t sid.Triple) map[uint64]bool {
	local := netip.AddrPortFrom(d.home.Space.ServiceAddr(t.Service), t.Port)
	waiting := map[uint64]bool{}
	err := d.eachSocket(sid.TCP, sockets.StateEstablished|sockets.StateCloseWait, t.Port, func(s sockets.DiagSocket) {
		if s.Inode == 0 && s.Local == local {
			waiting[s.Cookie] = true
		}
	})
	if err != nil {
		return nil
	}
	return waiting
}
