package registry

import (
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// fit tells the edge what to say of an instance to clients that ask this host itself, docs/protocol.md §3.5: what the
// network would say of it, once controller and routers know of it.
func (r *Registry) fit(t sid.Triple, i *instance) {
	r.judgeAs(t, i, i.fit(r.known(t)))
}

// fit judges an instance of a service whose policy is known or not.
func (i *instance) fit(known bool) host.Judgement {
	switch {
	case i.verdict(known).reason == "":
		return host.Fit
	case i.refused == "" && !i.drained && (!known || i.check == unchecked):
		return host.Later
	}
	return host.Unfit
}

func (r *Registry) judgeAs(t sid.Triple, i *instance, j host.Judgement) {
	if i.fitness == j {
		return
	}
	if err := r.edge.Judge(t, j); err != nil {
		r.cfg.Log.Error("cannot say who asks this host itself whether an instance is ready", "triple", t, "error", err)
		return
	}
	i.fitness = j
}

// sweepJudgements takes back what the daemon before this one said: all that serves has been judged anew, but what is fit,
// of which nothing is said.
func (r *Registry) sweepJudgements() {
	said := map[sid.Triple]bool{}
	for t, i := range r.instances {
		said[sid.Triple{Service: sid.ServiceID{Suffix: t.Service.Suffix}, Proto: t.Proto, Port: t.Port}] = i.fitness != host.Fit
	}
	if err := r.edge.SweepJudgements(func(t sid.Triple) bool { return said[t] }); err != nil {
		r.cfg.Log.Warn("cannot compare what the edge says of instances with them", "error", err)
	}
}
