package controld

import (
	"context"
	"maps"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/controller/controld/registrations"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// describe is the network as the loop knows it; nothing where it does not answer.
func (n *network) describe(ctx context.Context) health.Snapshot {
	told := make(chan health.Snapshot, 1)
	if n.ask(ctx, func() { told <- n.snapshotOf() }) != nil {
		return health.Snapshot{}
	}
	return <-told
}

func (n *network) snapshotOf() health.Snapshot {
	s := health.Snapshot{
		Settling: n.grace.Settling(), Routers: n.routerFacts(), Hosts: n.hostFacts(), Services: n.explain.Unserved(),
		Agents: n.boost.Agents(), Entries: n.boost.Entries(),
		Credentials: n.members.Credentials(), Former: n.members.Former(),
		Stores: []health.Store{{At: n.cfg.Name, Since: n.notSince, Pending: n.saver.Waiting()}},
	}
	if n.notSaved != nil {
		s.Stores[0].Failing = n.notSaved.Error()
	}
	if n.restored != nil {
		s.Restored, s.Unknown = n.restored.Made, len(n.unknown)
	}
	return s
}

func (n *network) routerFacts() (list []health.Router) {
	for _, name := range n.routers.Names() {
		r, _ := n.routers.Of(name)
		p := n.pushes.Of(name)
		f := health.Router{Name: name, Away: !r.Here, Since: r.Away, Error: p.Failed, Version: r.Version, Ahead: r.Ahead}
		switch {
		case f.Away && f.Since.IsZero():
			f.Since = n.started // it has not come since
		case f.Away:
		case p.Waiting > 0:
			f.Unconfirmed, f.Told = p.Waiting, p.Since
		default:
			f.Told = p.FailedAt
		}
		list = append(list, f)
	}
	return list
}

func (n *network) hostFacts() (list []health.Host) {
	for _, name := range slices.Sorted(maps.Keys(n.hosts)) {
		h := n.hosts[name]
		f := health.Host{Name: name, Since: h.away, Version: h.version, Ahead: h.ahead}
		switch {
		case !h.Here && !h.failed:
			continue // it left
		case !h.Here:
			f.Silent, f.Alone = true, true
		default:
			f.Silent = n.places.State(&h.Host) != plan.HostUp && n.places.Text(&h.Host) != "joining"
			f.Alone = h.session == nil
		}
		if since, silent := n.silences.Since(name); f.Silent && silent {
			f.Since = since
		}
		if f.Alone {
			if probed, away := n.places.Witnesses(&h.Host); !probed {
				f.Router = away
			}
		}
		if (f.Silent || f.Alone) && f.Since.IsZero() {
			f.Since = n.started // it was so before
		}
		n.registrations.Each(name, func(t sid.Triple, w registrations.Registration) {
			if r, ok := n.names.ByID(t.Service); ok && w.Up && w.Warned {
				f.Permits = append(f.Permits, health.Permit{Service: r.Name, Until: w.Until})
			}
		})
		list = append(list, f)
	}
	return list
}

// unserved is how many services nobody serves who should.
func (n *network) unserved() (count int) {
	s := health.Snapshot{Now: time.Now(), Settling: n.grace.Settling(), Services: n.explain.Unserved()}
	for _, p := range health.Judge(s) {
		if p.Severity == health.Critical {
			count += p.Count
		}
	}
	return count
}
