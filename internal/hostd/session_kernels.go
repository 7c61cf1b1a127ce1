package hostd

import (
	"context"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
)

// kernels are the kernel's TCP of the host and of each guest. The loop owns it.
type kernels struct {
	own    *transports
	guests map[uint16]*transports
	ends   map[uint16]context.CancelFunc
}

func newKernels(d *daemon) *kernels {
	return &kernels{own: newTransports(d), guests: map[uint16]*transports{}, ends: map[uint16]context.CancelFunc{}}
}

// add begins for a guest, with a Kicker that was opened in its namespace. Its silent connections are looked for
// the less often the more guests there are: a look passes over all sockets of the machine.
func (n *kernels) add(guest uint16, k *kick.Kicker) {
	t := newTransports(n.own.d)
	t.guest, t.k, t.busy, t.seen, t.slow = guest, k, n.own.busy, n.own.seen, n.own.slow
	t.rest = silenceEvery * time.Duration(1+len(n.guests))
	n.guests[guest] = t
	ctx, end := context.WithCancel(n.own.d.ctx)
	n.ends[guest] = end
	t.begin(ctx)
}

func (n *kernels) remove(guest uint16) {
	if end := n.ends[guest]; end != nil {
		end()
	}
	delete(n.ends, guest)
	delete(n.guests, guest)
}

// moving says whether many flows wait to be moved.
func (n *kernels) moving(now bool) {
	n.own.moving(now)
	for _, t := range n.guests {
		t.moving(now)
	}
}

// end gives guests' programs the end of their connections, at once.
func (n *kernels) end(list []host.Tuple) {
	n.each(list, func(t *transports, all []kick.Tuple) {
		if t.k == nil {
			return
		}
		if _, err := t.k.Reset(kick.SetOf(all...)); err != nil {
			t.d.log.Warn("cannot reset the connections of a guest", "connections", len(all), "error", err)
		}
	})
}

// host begins with the kernel's TCP of a guest.
func (s *sessions) host(guest uint16, k *kick.Kicker) { s.kernel.add(guest, k) }

func (s *sessions) unhost(guest uint16) { s.kernel.remove(guest) }

// of is nil for a guest that is gone: there is nobody to kick.
func (n *kernels) of(guest uint16) *transports {
	if guest == 0 {
		return n.own
	}
	return n.guests[guest]
}

func (n *kernels) look(of host.Tuple) (c *kick.Socket, sure bool) {
	if t := n.of(of.Guest); t != nil {
		return t.look(kickTuple(of))
	}
	return nil, true
}

func (n *kernels) read(of host.Tuple, then func(*kick.Socket)) {
	if t := n.of(of.Guest); t != nil {
		t.read(kickTuple(of), then)
		return
	}
	n.own.d.post(func() { then(nil) })
}

func (n *kernels) resetThen(which host.Tuple, then func()) {
	if t := n.of(which.Guest); t != nil {
		t.resetThen(kickTuple(which), then)
		return
	}
	n.own.d.post(then)
}

func (n *kernels) reset(list []host.Tuple) { n.each(list, (*transports).reset) }

func (n *kernels) kick(list []host.Tuple) { n.each(list, (*transports).kick) }

// each does something with the connections of each guest.
func (n *kernels) each(list []host.Tuple, f func(*transports, []kick.Tuple)) {
	if len(list) == 0 {
		return
	}
	by := map[uint16][]kick.Tuple{}
	for _, t := range list {
		by[t.Guest] = append(by[t.Guest], kickTuple(t))
	}
	for guest, some := range by {
		if t := n.of(guest); t != nil {
			f(t, some)
		}
	}
}
