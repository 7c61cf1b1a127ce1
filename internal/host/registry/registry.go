package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// A Registry knows what this host serves and what of it the controller was told. The loop owns it.
type Registry struct {
	cfg       Config
	ctx       context.Context // of ready checks
	edge      Edge            // nil before there is one
	sockets   *serving.Sockets
	instances map[sid.Triple]*instance
	policies  map[sid.ServiceID]*apiv1.ServicePolicy
	told      map[sid.Triple]verdict // the verdict that the controller has
	missing   map[uint64]int         // looks at which a listener was not there
	seq       uint64
	dirty     bool
	changes   int                     // instances that came, went, or may serve or not since, ever
	dumped    bool                    // the sockets from before are known
	awaited   map[uint16]bool         // namespaces whose sockets from before are not known yet
	shared    map[sid.Triple][]uint16 // who takes first packets, where guests do
	before    map[sid.Triple]bool     // the daemon before admitted them, and this one was not told the policies of their services yet
	swept     bool                    // what the edge has of others who served is gone
	owed      bool                    // the session has not got its snapshot yet
	looked    time.Time               // at accept queues, last
	programs  programs

	catching sync.Mutex    // of who waits for caught
	caught   chan struct{} // hears when a reader of sockets has caught up; nil: nobody waits
}

// New makes a registry whose ready checks run until ctx ends.
func New(ctx context.Context, cfg Config) *Registry {
	return &Registry{
		cfg: cfg, ctx: ctx, sockets: serving.NewSockets(), instances: map[sid.Triple]*instance{},
		policies: map[sid.ServiceID]*apiv1.ServicePolicy{}, told: map[sid.Triple]verdict{}, missing: map[uint64]int{},
		awaited: map[uint16]bool{0: true}, shared: map[sid.Triple][]uint16{}, before: map[sid.Triple]bool{}, programs: newPrograms(cfg.Post),
	}
}

// EdgeOpened says which edge lets first packets in from now on.
func (r *Registry) EdgeOpened(edge Edge) { r.edge = edge }

// Await has what the edge lets in since before this daemon kept until the sockets of a guest are known, too.
func (r *Registry) Await(guest uint16) { r.awaited[guest] = true }

// up admits a triple's first packets; flush tells the controller.
func (r *Registry) up(t sid.Triple, why string) {
	i := &instance{carries: r.carries(t)}
	r.instances[t] = i
	r.changes++
	r.dirty = true
	switch {
	case r.known(t):
		r.admit(t, i)
	case r.before[t] && !r.cfg.Controller.Connected():
		// Routers may know it yet, and the edge has kept who may connect. It is no instance that was found in place: once a
		// controller says what it takes to serve here, all of that is asked.
		r.admit(t, i)
	}
	r.cfg.Log.Info("serving", "service", r.Name(t.Service), "proto", t.Proto, "port", t.Port, "why", why)
	r.share(t)
}

// admit lets first packets in. It waits until it is known who may connect.
func (r *Registry) admit(t sid.Triple, i *instance) {
	if why, user := r.unfit(t, i); why != "" {
		if !i.trusted || !user {
			i.barred, i.refused = true, why
			if err := r.edge.Withdraw(t); err != nil { // it may be admitted since before this daemon
				r.cfg.Log.Error("cannot withdraw", "triple", t, "error", err)
			}
			r.fit(t, i)
			r.cfg.Log.Warn("cannot serve", "service", r.Name(t.Service), "proto", t.Proto, "port", t.Port, "reason", why)
			return
		}
		// It served before this daemon began, perhaps under a version that did not ask: an upgrade takes nothing away.
		r.cfg.Log.Warn("serves on until its program restarts", "service", r.Name(t.Service), "proto", t.Proto, "port", t.Port, "then", why)
	}
	admit := r.edge.AdmitListening
	if i.hidden = i.hidden || r.hidden(t); i.hidden {
		admit = r.edge.Admit // until it is withdrawn
	}
	err := admit(t)
	if i.barred = err != nil; !i.barred {
		return
	}
	i.refused = err.Error()
	for _, known := range []error{host.ErrSuffix, host.ErrNoRoom} {
		if errors.Is(err, known) {
			i.refused = known.Error()
		}
	}
	r.fit(t, i)
	r.cfg.Log.Warn("cannot serve", "triple", t, "error", err)
}

// down makes late first packets bounce at once; flush tells the controller.
func (r *Registry) down(t sid.Triple, why string) {
	i := r.instances[t]
	if i == nil {
		return
	}
	if err := r.edge.Withdraw(t); err != nil {
		r.cfg.Log.Error("cannot withdraw", "triple", t, "error", err)
	}
	r.judgeAs(t, i, host.Fit)
	i.cancelChecks()
	delete(r.instances, t)
	r.unshare(t)
	r.changes++
	r.dirty = true
	r.cfg.Log.Info("no longer serving", "service", r.Name(t.Service), "proto", t.Proto, "port", t.Port, "why", why)
}

// WithdrawAll is the host's own goodbye.
func (r *Registry) WithdrawAll() {
	for t := range r.instances {
		r.down(t, "the host leaves")
	}
}

// Name of a service, as far as it was told.
func (r *Registry) Name(id sid.ServiceID) string {
	if p := r.policies[id]; p != nil && p.Name != "" {
		return p.Name
	}
	return id.String()
}

// known reports whether the service's policy is known: until then nobody can say what ready means.
func (r *Registry) known(t sid.Triple) bool { return r.policies[t.Service] != nil }
