package registrations

import (
	"fmt"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// judge lets the host serve what it wants to, or not.
func (x *Registrations) judge(h *host, t sid.Triple) {
	w := h.wanted[t]
	r, ok := x.Services.ByID(t.Service)
	if !ok {
		x.none(h, t, w)
		x.Hosts.Unknown(h.name, t.Service)
		x.tellRefused(h, t, fmt.Sprintf("service %v does not exist in this network: create it with scaffold service create; the registration counts from then on", t.Service))
		return
	}
	kind, why := x.unfit(h, t, r, &w)
	x.put(h, t, w)
	if why != "" {
		x.bar(h, t, r, kind, why)
		return
	}
	if err := x.Plan.Register(h.name, t, w.Ready); err != nil {
		x.none(h, t, w)
		x.tellRefused(h, t, err.Error())
		return
	}
	x.serves(h, t, w)
}

// none notes that what may have been an instance in the term before is none.
func (x *Registrations) none(h *host, t sid.Triple, w wish) {
	w.Up, w.told = false, false
	x.put(h, t, w)
}

// serves tells of an instance that is registered, and the host what it needs to know.
func (x *Registrations) serves(h *host, t sid.Triple, now wish) {
	before := now.told
	now.Refused, now.Up, now.told = "", true, now.Ready.Ready
	was := h.wanted[t].Up
	x.put(h, t, now)
	x.tell(h, t.Service)
	x.Drains.Tell(h.name, t.Service)
	if now.told && !(was && before) {
		x.Ready()
	}
	switch {
	case !was:
		x.served(t.Service)
		x.Access.TouchService(t.Service)
		x.instanceEvent("instance.up", h, t, upText(now.Ready))
	case before && !now.told:
		x.instanceEvent("instance.unready", h, t, events.Because("instance is not ready", now.Ready.Reason))
	case !before && now.told:
		x.instanceEvent("instance.ready", h, t, "instance is ready")
	}
}

// unfit says why a host may not serve: a word for counting, and a sentence.
func (x *Registrations) unfit(h *host, t sid.Triple, r names.Record, w *wish) (kind, why string) {
	a := r.Access
	if why := a.MayServe(h.name, w.user); why != "" {
		return "server", fmt.Sprintf("service %s %s: `scaffold service access` or the service's file says who may", r.Name, why)
	}
	if len(a.Key) > 0 {
		return x.permitted(h, t, r, w)
	}
	if len(a.Servers) == 0 && x.Named {
		return "unnamed", fmt.Sprintf("service %s names nobody who may serve it, and this network wants that (controld --serve named): give it a list of servers, or make it with a key", r.Name)
	}
	return "", ""
}

// bar keeps a host from serving, or from serving on.
func (x *Registrations) bar(h *host, t sid.Triple, r names.Record, kind, why string) {
	w := h.wanted[t]
	again := w.Refused == why
	if w.Up {
		x.Plan.Withdraw(h.name, t)
		x.Access.TouchService(t.Service)
		x.instanceEvent("instance.down", h, t, "instance is down: its host may not serve any more")
	}
	w.Refused, w.Up, w.told = why, false, false
	x.put(h, t, w)
	x.Refused.Inc(kind)
	x.tellRefused(h, t, why)
	delete(h.told, t.Service) // if it may one day, it is told anew
	if !again && x.Hosts.MayTell(h.name) {
		x.Events.Tell("instance.refused", r.Name, fmt.Sprintf("%s %v/%d may not serve: %s", h.name, t.Proto, t.Port, why),
			"host", h.name, "proto", t.Proto.String(), "port", events.Number(t.Port), "why", kind)
	}
}

func (x *Registrations) tellRefused(h *host, t sid.Triple, why string) {
	if x.Hosts.Connected(h.name) {
		x.refuse(h, &apiv1.Registration{Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port)}, why)
	}
}

// Rejudge looks again at all that wants to serve the service: it is new, or who may serve it has changed.
func (x *Registrations) Rejudge(id sid.ServiceID) {
	for _, h := range x.hosts {
		if !x.Hosts.Here(h.name) {
			continue
		}
		for t := range h.wanted {
			if t.Service == id {
				x.judge(h, t)
			}
		}
	}
}

func upText(r plan.Readiness) string {
	if r.Ready {
		return "instance is up"
	}
	return events.Because("instance is up and not ready", r.Reason)
}
