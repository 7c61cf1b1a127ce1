package registry

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
)

// NewSession makes the next flush tell everything.
func (r *Registry) NewSession() { r.owed, r.dirty = true, true }

// snapshot tells everything, anew.
func (r *Registry) snapshot() {
	r.owed = false
	clear(r.told)
	var all []*apiv1.Registration
	for t, i := range r.instances {
		i.reconsider()
		all = append(all, r.registration(t, i))
	}
	r.seq++
	r.cfg.Controller.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Snapshot{Snapshot: &apiv1.Registrations{Entries: all, Seq: r.seq}}})
}

// Flush reports what changed, withdrawals first. A snapshot waits until the sockets from before are
// known: without them it would withdraw what serves.
func (r *Registry) Flush() {
	if !r.dirty || !r.cfg.Controller.Connected() || !r.dumped {
		return
	}
	r.dirty = false
	if r.owed {
		r.snapshot()
		return
	}
	var gone, come []*apiv1.Registration
	for t := range r.told {
		if r.instances[t] == nil {
			gone = append(gone, &apiv1.Registration{Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port), Gone: true})
			delete(r.told, t)
		}
	}
	for t, i := range r.instances {
		if told, ok := r.told[t]; !ok || told != r.verdict(t, i) {
			if ok && r.soon(t, i, told) {
				r.dirty = true
				continue
			}
			come = append(come, r.registration(t, i))
		}
	}
	if len(gone)+len(come) == 0 {
		return
	}
	r.seq++
	r.cfg.Controller.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Delta{Delta: &apiv1.Registrations{Entries: append(gone, come...), Seq: r.seq}}})
}

// turnsAfter is the least time between two turns of an instance for its accept queue, and between two tellings of how many
// of its listeners work. Who goes and comes back twenty times a second takes tables, events and the clients of others along.
const turnsAfter = time.Second

// soon reports whether what is to be told of an instance is another turn of its accept queue, shortly after the last. One
// that is taken out whole does not wait because a part of it was, a moment before: that makes no event.
func (r *Registry) soon(t sid.Triple, i *instance, told verdict) bool {
	now := r.verdict(t, i)
	switch {
	case told.queue != now.queue && told.queueAlone() && now.queueAlone():
		return !pass(&i.turned)
	case now.weight(told):
		return !pass(&i.weighed)
	}
	return false
}

// pass reports whether there has been none for long enough, and notes one that may be now.
func pass(last *time.Time) bool {
	if time.Since(*last) < turnsAfter {
		return false
	}
	*last = time.Now()
	return true
}

// registration is what the controller is told of a triple; it is noted as told.
func (r *Registry) registration(t sid.Triple, i *instance) *apiv1.Registration {
	v := r.verdict(t, i)
	if told, ok := r.told[t]; ok && told != v {
		r.cfg.Log.Info("readiness changed", "service", r.Name(t.Service), "proto", t.Proto, "port", t.Port, "ready", v.reason == "", "reason", v.text())
	}
	r.told[t] = v
	r.fit(t, i)
	g := &apiv1.Registration{
		Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port),
		Ready: v.reason == "", Reason: v.reason, Queue: v.queue, Slow: v.slow, CanResume: v.resume, User: i.user,
		Working: uint32(v.working), Listeners: uint32(v.listeners), Carries: i.carries,
	}
	r.cfg.Permits.Show(g, t)
	return g
}

// verdict is what is reported of a triple.
func (r *Registry) verdict(t sid.Triple, i *instance) verdict {
	v := i.verdict(r.known(t))
	v.resume = r.cfg.Flows.CanResume(t)
	return v
}

// ShowAnew registers again what is served of services that the controller is to be shown something new of.
func (r *Registry) ShowAnew(news func(id sid.ServiceID) bool) {
	for t, i := range r.instances {
		if !news(t.Service) {
			continue
		}
		i.reconsider()
		if _, told := r.told[t]; told {
			r.told[t] = verdict{reason: "to be told again"}
		}
		r.dirty = true
	}
}
