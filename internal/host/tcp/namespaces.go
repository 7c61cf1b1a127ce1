package tcp

import (
	"context"
	"log/slog"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
)

// Namespaces are the kernel's TCP of the host and of each guest. The loop owns it.
type Namespaces struct {
	ctx    context.Context
	own    *stack
	guests map[uint16]*stack
	ends   map[uint16]context.CancelFunc
}

// New is that of a host, until ctx ends; post hands work to the loop, in which hear is called.
func New(ctx context.Context, log *slog.Logger, post func(func()), hear Listener) *Namespaces {
	return &Namespaces{ctx: ctx, own: newStack(log, post, hear), guests: map[uint16]*stack{}, ends: map[uint16]context.CancelFunc{}}
}

// Start begins with the host's own, once. It is called on a thread in the host's namespace.
func (n *Namespaces) Start() { n.own.start(n.ctx) }

// BindTo says the device of the VRF in which the host's programs are, "" where they are in none. That may change.
func (n *Namespaces) BindTo(device string) { n.own.bindTo(device) }

// Add begins for a guest, with a Kicker that was opened in its namespace. Its silent connections are looked for
// the less often the more guests there are: a look passes over all sockets of the machine.
func (n *Namespaces) Add(guest uint16, k *kick.Kicker) {
	t := newStack(n.own.log, n.own.post, n.own.hear)
	t.guest, t.k, t.busy = guest, k, n.own.busy
	t.rest = silenceEvery * time.Duration(1+len(n.guests))
	n.guests[guest] = t
	ctx, end := context.WithCancel(n.ctx)
	n.ends[guest] = end
	t.begin(ctx)
}

// Remove ends for a guest.
func (n *Namespaces) Remove(guest uint16) {
	if end := n.ends[guest]; end != nil {
		end()
	}
	delete(n.ends, guest)
	delete(n.guests, guest)
}

// Busy says whether there are flows: silent connections are looked for.
func (n *Namespaces) Busy(yes bool) { n.own.busy.Store(yes) }

// Moving says whether many flows wait to be moved: choked connections are looked for more often.
func (n *Namespaces) Moving(now bool) {
	n.own.moving(now)
	for _, t := range n.guests {
		t.moving(now)
	}
}

// End gives guests' programs the end of their connections, at once.
func (n *Namespaces) End(list []host.Tuple) {
	n.each(list, func(t *stack, all []kick.Tuple) {
		if t.k == nil {
			return
		}
		if _, err := t.k.Reset(kick.SetOf(all...)); err != nil {
			t.log.Warn("cannot reset the connections of a guest", "connections", len(all), "error", err)
		}
	})
}

// of is nil for a guest that is gone: there is nobody to kick.
func (n *Namespaces) of(guest uint16) *stack {
	if guest == 0 {
		return n.own
	}
	return n.guests[guest]
}

// Look reads one connection at once, nil where there is none; not sure where only Read can tell.
func (n *Namespaces) Look(of host.Tuple) (c *kick.Socket, sure bool) {
	if t := n.of(of.Guest); t != nil {
		return t.look(kickTuple(of))
	}
	return nil, true
}

// Read looks at one connection, in the next look at all; then gets it in the loop, nil where there is none.
func (n *Namespaces) Read(of host.Tuple, then func(*kick.Socket)) {
	if t := n.of(of.Guest); t != nil {
		t.read(kickTuple(of), then)
		return
	}
	n.own.post(func() { then(nil) })
}

// ResetThen ends a connection with an error and then calls then in the loop.
func (n *Namespaces) ResetThen(which host.Tuple, then func()) {
	if t := n.of(which.Guest); t != nil {
		t.resetThen(kickTuple(which), then)
		return
	}
	n.own.post(then)
}

// Reset ends connections with an error.
func (n *Namespaces) Reset(list []host.Tuple) { n.each(list, (*stack).reset) }

// Kick makes connections send now what waits for a timer.
func (n *Namespaces) Kick(list []host.Tuple) { n.each(list, (*stack).kick) }

// each does something with the connections of each guest.
func (n *Namespaces) each(list []host.Tuple, f func(*stack, []kick.Tuple)) {
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

func kickTuple(t host.Tuple) kick.Tuple { return kick.Tuple{Local: t.Local, Peer: t.Remote} }
