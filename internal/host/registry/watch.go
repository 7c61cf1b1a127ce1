package registry

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// Watch brings dumps and events to the loop, in order, until the hooks are closed.
func (r *Registry) Watch(guest uint16, socks *sockets.Host, done chan struct{}) {
	defer close(done)
	r.dump(guest, socks)
	for {
		e, err := socks.Read()
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			r.cfg.Log.Error("socket events", "error", err)
			return
		case e.Kind == sockets.Lost:
			r.cfg.Log.Warn("socket events came faster than they were read; looking at all sockets")
			r.dump(guest, socks)
		case e.Kind == sockets.CaughtUp:
			r.cfg.Post(func() {
				select {
				case r.caught <- struct{}{}:
				default: // nobody waits any more
				}
			})
		default:
			r.cfg.Post(func() { r.event(guest, e) })
		}
	}
}

// catchUpTime bounds how long CatchUp takes where a guest goes meanwhile.
const catchUpTime = time.Second

// CatchUp returns when the loop knows of every socket that was closed by now: also of a program's whose end its parent
// has heard of already.
func (r *Registry) CatchUp(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, catchUpTime)
	defer stop()
	r.catching.Lock()
	defer r.catching.Unlock()
	var from []*sockets.Host
	var caught chan struct{}
	known := r.cfg.Call(ctx, func() {
		from = r.cfg.Namespaces.Watched()
		caught = make(chan struct{}, len(from))
		r.caught = caught
	})
	if !known {
		return
	}
	for _, s := range from {
		if s.Flush() != nil {
			continue // it is closed
		}
		select {
		case <-caught:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Registry) dump(guest uint16, socks *sockets.Host) {
	events, err := socks.Dump()
	if err != nil {
		r.cfg.Log.Error("cannot list the sockets that serve", "error", err)
	}
	r.cfg.Post(func() {
		if r.there(guest) {
			r.replace(guest, events)
		}
	})
}

// event counts one socket in or out.
func (r *Registry) event(guest uint16, e sockets.Event) {
	if !r.there(guest) {
		return
	}
	if e.Kind == sockets.Unregister {
		delete(r.missing, e.Cookie)
		if t, last := r.sockets.Unregister(e.Cookie); last {
			r.down(t, fmt.Sprintf("%v by %s", e.Why, process(e.PID, e.Comm)))
			if t.Proto == sid.UDP && e.Why == sockets.Closed {
				r.cfg.Flows.Orphaned(t, e.Cookie)
			}
		} else if r.instances[t] != nil {
			r.share(t)
		}
		return
	}
	t, ok := r.triple(guest, e)
	if !ok {
		return
	}
	if r.sockets.Register(e.Cookie, t, owner(guest, e)) {
		r.up(t, "by "+process(e.PID, e.Comm)+r.where(guest))
	} else {
		r.share(t)
	}
}

func owner(guest uint16, e sockets.Event) serving.Owner {
	return serving.Owner{PID: e.PID, Comm: e.Comm, Guest: guest}
}

func process(pid uint32, comm string) string {
	if pid == 0 {
		return "a process"
	}
	return fmt.Sprintf("%s[%d]", comm, pid)
}

// triple reads a service address, or the wildcard one of a guest.
func (r *Registry) triple(guest uint16, e sockets.Event) (sid.Triple, bool) {
	at := e.Addr
	if x, up := r.cfg.Namespaces.Guest(guest); up && at == netip.IPv6Unspecified() {
		at = x.Address // it is told of such listeners where they serve that
	}
	id, ok := r.edge.Space().ServiceOf(at)
	if !ok {
		r.cfg.Log.Warn("a program binds an address that no service can have", "address", e.Addr, "process", process(e.PID, e.Comm))
		return sid.Triple{}, false
	}
	return sid.Triple{Service: id, Proto: e.Proto, Port: e.Port}, true
}

// there reports whether a namespace is not gone.
func (r *Registry) there(guest uint16) bool {
	if guest == 0 {
		return true
	}
	_, up := r.cfg.Namespaces.Guest(guest)
	return up
}

// where says in which guest something is, for people.
func (r *Registry) where(guest uint16) string {
	if x, up := r.cfg.Namespaces.Guest(guest); up {
		return " in guest " + x.Name
	}
	return ""
}
