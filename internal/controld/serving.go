package controld

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// Who may serve a service that has neither a key nor a list of servers.
const (
	ServeAny   = "any"   // any host of the network
	ServeNamed = "named" // nobody
)

// register takes a registration, whether the host may serve or not: what it wants is kept, and counts as
// soon as it may.
func (n *network) register(h *host, t sid.Triple, r *apiv1.Registration) {
	before, again := h.wanted[t]
	if !again && len(h.wanted) >= maxRegistrations {
		n.refuse(h, r, fmt.Sprintf("a host serves at most %d instances", maxRegistrations))
		return
	}
	w := before
	w.ready = plan.Readiness{Ready: r.Ready, Queue: r.Queue && !r.Ready, Resume: r.CanResume, Reason: shortened(r.Reason)}
	if !again || before.ready.Ready != r.Ready {
		w.since = time.Now()
	}
	if !bytes.Equal(w.permit, r.Permit) || !bytes.Equal(w.signature, r.Signature) {
		w.permit, w.signature, w.proved, w.warned = bytes.Clone(r.Permit), bytes.Clone(r.Signature), false, false
	}
	h.wanted[t] = w
	n.judge(h, t)
}

// judge lets the host serve what it wants to, or not.
func (n *network) judge(h *host, t sid.Triple) {
	w := h.wanted[t]
	r, ok := n.names.ByID(t.Service)
	if !ok {
		n.missed(h, t.Service)
		n.tellRefused(h, t, fmt.Sprintf("service %v does not exist in this network: create it with scaffold service create; the registration counts from then on", t.Service))
		return
	}
	kind, why := n.unfit(h, t, r, &w)
	h.wanted[t] = w
	if why != "" {
		n.bar(h, t, r, kind, why)
		return
	}
	if err := n.plan.Register(h.Name, t, w.ready); err != nil {
		n.tellRefused(h, t, err.Error())
		return
	}
	n.serves(h, t, w)
}

// serves tells of an instance that is registered, and the host what it needs to know.
func (n *network) serves(h *host, t sid.Triple, now wish) {
	before := now.told
	now.refused, now.up, now.told = "", true, now.ready.Ready
	was := h.wanted[t].up
	h.wanted[t] = now
	n.tellPolicy(h, t.Service)
	if h.ordered[t.Service] != n.drainMode(h, t.Service) {
		n.tellDrain(h, t.Service)
	}
	if now.told && !(was && before) {
		n.changedHands = true
	}
	switch {
	case !was:
		n.touchGuards(t.Service)
		n.instanceEvent("instance.up", h, t, upText(now.ready))
	case before && !now.told:
		n.instanceEvent("instance.unready", h, t, because("instance is not ready", now.ready.Reason))
	case !before && now.told:
		n.instanceEvent("instance.ready", h, t, "instance is ready")
	}
}

// unfit says why a host may not serve: a word for counting, and a sentence.
func (n *network) unfit(h *host, t sid.Triple, r names.Record, w *wish) (kind, why string) {
	a := r.Access
	if len(a.Servers) > 0 && !slices.Contains(a.Servers, h.Name) {
		return "server", fmt.Sprintf("service %s names the hosts that may serve it, and %s is not among them: `scaffold service access` or the service's file names it", r.Name, h.Name)
	}
	if len(a.Key) > 0 {
		return n.permitted(h, t, r, w)
	}
	if len(a.Servers) == 0 && n.cfg.Serve == ServeNamed {
		return "unnamed", fmt.Sprintf("service %s names nobody who may serve it, and this network wants that (controld --serve %s): give it a list of servers, or make it with a key", r.Name, ServeNamed)
	}
	return "", ""
}

// bar keeps a host from serving, or from serving on.
func (n *network) bar(h *host, t sid.Triple, r names.Record, kind, why string) {
	w := h.wanted[t]
	again := w.refused == why
	if w.up {
		n.plan.Withdraw(h.Name, t)
		n.touchGuards(t.Service)
		n.instanceEvent("instance.down", h, t, "instance is down: its host may not serve any more")
	}
	w.refused, w.up, w.told = why, false, false
	h.wanted[t] = w
	n.metrics.refusedServing.Inc(kind)
	n.tellRefused(h, t, why)
	delete(h.told, t.Service) // if it may one day, it is told anew
	if !again && h.meter.take(time.Now(), eventBurst, eventsASecond) {
		n.event("instance.refused", r.Name, fmt.Sprintf("%s %v/%d may not serve: %s", h.Name, t.Proto, t.Port, why),
			"host", h.Name, "proto", t.Proto.String(), "port", uitoa(t.Port), "why", kind)
	}
}

func (n *network) tellRefused(h *host, t sid.Triple, why string) {
	if h.session != nil {
		n.refuse(h, &apiv1.Registration{Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port)}, why)
	}
}

// rejudge looks again at all that wants to serve the service: it is new, or who may serve it has changed.
func (n *network) rejudge(id sid.ServiceID) {
	for _, h := range n.hosts {
		if !h.Here {
			continue
		}
		for t := range h.wanted {
			if t.Service == id {
				n.judge(h, t)
			}
		}
	}
}

func upText(r plan.Readiness) string {
	if r.Ready {
		return "instance is up"
	}
	return because("instance is up and not ready", r.Reason)
}
