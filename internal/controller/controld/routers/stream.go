package routers

import (
	"errors"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
)

// maxCounters is more than any router's program has.
const maxCounters = 256

// Report works on one message of a router's stream.
func (x *Routers) Report(name string, s *Session, m *apiv1.RouterReport) {
	r, ok := x.all[name]
	if !ok || r.session != s {
		return // of a stream that was replaced meanwhile
	}
	switch m := m.Report.(type) {
	case *apiv1.RouterReport_Neighbours:
		r.Reported = true
		x.Links.Report(name, m.Neighbours)
	case *apiv1.RouterReport_Hosts:
		x.Places.Said(name, m.Hosts.GetHosts())
	case *apiv1.RouterReport_Counters:
		if len(m.Counters.GetCounters()) <= maxCounters {
			r.Counters = m.Counters
		}
		r.Ahead = session.Ahead(m.Counters.GetNowUnixMs())
	case *apiv1.RouterReport_TunnelsMade:
		x.Tunnels.Made(name, m.TunnelsMade)
	case *apiv1.RouterReport_Applied:
		x.Pushes.Applied(name, m.Applied)
	}
}

// Lost is told that a stream ended. The router stays in the plan: its kernel forwards on.
func (x *Routers) Lost(name string, s *Session, err error) {
	r, ok := x.all[name]
	if !ok || r.session != s {
		return
	}
	r.session, r.Here, r.Reported = nil, false, false
	x.Pushes.Left(name)
	x.Links.Left(name)
	r.Away = time.Now()
	if errors.Is(err, session.ErrSlow) {
		x.Dropped.Inc()
	}
	text := "router left: its daemon was stopped, or starts again"
	if err != nil {
		text = events.Because("router is not connected; it goes on forwarding by what it knows", err.Error())
	}
	x.Events.Tell("router.gone", name, text)
	r.absences++
	absence := r.absences
	x.Loop.After(x.Lease, func() {
		if r.absences == absence && x.all[name] == r {
			x.Distrust(name)
		}
	})
}

// Distrust puts a limit to trusting a router that stays away: once all neighbours say that
// it does not greet, its silent hosts are suspect, so that others are preferred where there are any.
func (x *Routers) Distrust(name string) {
	if r := x.all[name]; r != nil && !r.Here && !x.Links.AnyTo(name) {
		x.Places.Unreachable(name)
	}
}

// Forget takes a router out of the network for good, and reports whether there was one.
func (x *Routers) Forget(name string) bool {
	r := x.all[name]
	if r == nil {
		return false
	}
	if s := r.session; s != nil {
		x.Lost(name, s, session.ErrRevoked)
		s.End(session.ErrRevoked)
	}
	delete(x.all, name)
	x.Tunnels.Forgotten(name)
	x.Links.Forgotten(name)
	x.Pushes.Forget(name)
	delete(x.blocks, r.Block)
	x.Plan.RemoveRouter(name)
	x.tellKey(&apiv1.RouterKey{Name: name, Gone: true}, nil)
	x.Saver.Later(store.DeleteRouter(name), store.DeleteLinks(name))
	return true
}
