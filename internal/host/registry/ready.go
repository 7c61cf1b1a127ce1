package registry

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/internal/host/checks"
	"scaffold.dev/scaffold/sid"
)

// unchecked is the reason of a check that has not ended yet.
const unchecked = "ready check has not passed yet"

// A check is the ready check of an instance in one namespace.
type check struct {
	cancel context.CancelFunc
	reason string // why it fails
}

// startChecks runs the ready checks that the service's policy wants, where they do not run already: one in each
// namespace that serves the triple.
func (r *Registry) startChecks(t sid.Triple, i *instance, guests []uint16) {
	p := r.policies[t.Service]
	if p == nil {
		return
	}
	spec := p.Policy.Ready
	if t.Proto != sid.TCP && !strings.HasPrefix(spec, "exec:") {
		spec = "" // a datagram socket has nothing to connect to
	}
	if i.spec != spec {
		i.cancelChecks()
	}
	i.spec = spec
	for guest, c := range i.checks {
		if !slices.Contains(guests, guest) {
			c.cancel()
			delete(i.checks, guest)
		}
	}
	for _, guest := range guests {
		if spec != "" && i.checks[guest] == nil {
			r.startCheck(t, i, guest)
		}
	}
	r.judge(i)
}

func (r *Registry) startCheck(t sid.Triple, i *instance, guest uint16) {
	ctx, cancel := context.WithCancel(r.ctx)
	k := &check{cancel: cancel}
	if !i.trusted {
		k.reason = unchecked
	}
	if i.checks == nil {
		i.checks = map[uint16]*check{}
	}
	i.checks[guest] = k
	word, command := strings.CutPrefix(i.spec, "exec:")
	if command && r.refuseCheck(t, k, word) {
		return
	}
	from, in := r.cfg.Namespaces.At(guest)
	c := checks.Check{Spec: i.spec, To: netip.AddrPortFrom(r.edge.Space().ServiceAddr(t.Service), t.Port), From: from, In: in, Mark: r.cfg.Mark, Device: r.cfg.Namespaces.Device(guest), Allowed: r.cfg.Allowed}
	if command {
		c.Servant = &checks.Servant{Proto: t.Proto, At: c.To, In: in, Cookies: func() map[uint64]bool { return r.cookies(ctx, t, guest) }}
	}
	go c.Repeat(ctx, func(reason string) {
		r.cfg.Post(func() {
			if r.instances[t] == i && i.checks[guest] == k && ctx.Err() == nil && k.reason != reason {
				k.reason = reason
				r.share(t)
			}
		})
	})
}

// refuseCheck reports whether a check is a command that this host does not allow. The configuration is read at start,
// so nothing is tried again.
func (r *Registry) refuseCheck(t sid.Triple, k *check, word string) bool {
	_, err := r.cfg.Allowed.Command(word)
	if err == nil {
		return false
	}
	k.reason = "ready check: " + err.Error()
	r.cfg.Log.Warn("a service of this host wants a ready check that is not allowed here: its instance is not ready",
		"service", r.Name(t.Service), "add", fmt.Sprintf("exec-check: [%q]", word))
	return true
}

// cookies are those of the sockets that serve the triple in a namespace, asked from outside the loop.
func (r *Registry) cookies(ctx context.Context, t sid.Triple, guest uint16) map[uint64]bool {
	all := map[uint64]bool{}
	if !r.cfg.Call(ctx, func() {
		r.sockets.Cookies(t, func(cookie uint64, o serving.Owner) {
			if o.Guest == guest {
				all[cookie] = true
			}
		})
	}) {
		return nil
	}
	return all
}

// judge makes one answer of the checks: it is enough that one namespace is ready.
func (r *Registry) judge(i *instance) {
	why := ""
	for _, c := range i.checks {
		if c.reason == "" {
			why = ""
			break
		}
		why = max(why, c.reason) // any, but the same each time
	}
	if why != i.check {
		i.check, r.dirty = why, true
	}
}

func (i *instance) cancelChecks() {
	for _, c := range i.checks {
		c.cancel()
	}
	i.checks = nil
}
