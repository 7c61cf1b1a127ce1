package emud

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"scaffold.dev/scaffold/emu/forward"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// routes keep the computed routes in step with the faults.
type routes struct {
	work  sync.Mutex // of table, while it computes
	table *routing   // nil where nothing is computed

	pending bool // somebody will follow the last faults
	Routes
}

// startRoutes gives all routers their routes; nothing moves yet.
func (e *engine) startRoutes() error {
	if e.cfg.Routing.Computed {
		table, err := newRouting(e)
		if err != nil {
			return err
		}
		began := time.Now()
		table.fill()
		e.routes.table = table
		e.routes.Took = time.Since(began)
	}
	for _, r := range e.order {
		if err := e.loadRoutes(r); err != nil {
			return err
		}
	}
	return nil
}

// loadRoutes gives one router all of its routes.
func (e *engine) loadRoutes(r *router) error {
	program, ok := r.Program().(routed)
	if !ok {
		return nil // it finds its ways by itself
	}
	all := r.static()
	if r.feed != nil {
		all = append(all, r.feed.all()...)
	}
	if e.routes.table != nil {
		if row := e.routes.table.rowOf(r); row != nil {
			all = append(all, row.routes(e.routes.table.to)...)
			e.routes.Changed += len(all)
		}
	}
	var err error
	if asked := e.net.Do(r.Router, func() { err = program.SetRoutes(all) }); asked != nil {
		return asked
	}
	if err != nil {
		return fmt.Errorf("router %s: %w", r.Name(), err)
	}
	return nil
}

// static are the routes of the configuration.
func (r *router) static() (all []forward.Route) {
	for _, s := range r.cfg.Static {
		if s.Port == nil {
			all = append(all, forward.Route{Prefix: s.To, Kind: forward.Blackhole})
		} else {
			all = append(all, forward.To(s.To, *s.Port))
		}
	}
	return all
}

func (t *routing) rowOf(r *router) *row {
	for _, row := range t.rows {
		if row != nil && row.router == r {
			return row
		}
	}
	return nil
}

// routes are all that the row says, and forget that something in it is new.
func (r *row) routes(to []*destination) (all []forward.Route) {
	r.stale = r.stale[:0]
	for i, way := range r.ways {
		if way == 0 {
			continue
		}
		for _, p := range to[i].prefixes {
			if !r.fixed[p] {
				all = append(all, forward.Route{Prefix: p, Hops: r.sets[way]})
			}
		}
	}
	return all
}

// changed takes note of faults, and has the routes follow them after the time of convergence. It is called with mu.
func (e *engine) changed(n int) {
	e.routes.Faults += n
	if e.routes.table == nil {
		e.routes.Installed = e.routes.Faults
		return
	}
	if !e.routes.pending {
		e.routes.pending = true
		time.AfterFunc(e.cfg.Routing.Convergence, e.reroute)
	}
}

// reroute brings paths and tables up to date.
func (e *engine) reroute() {
	t := e.routes.table
	e.routes.work.Lock()
	defer e.routes.work.Unlock()
	e.mu.Lock()
	e.routes.pending = false
	known, up := e.routes.Faults, make([]bool, len(t.cfg.Edges))
	for i, h := range t.cfg.Edges {
		up[i] = h.Link < 0 || e.links[h.Link].usable()
	}
	e.mu.Unlock()
	began := time.Now()
	err := t.follow(up)
	changed, failed := e.installChanges()
	err = errors.Join(err, failed)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.routes.Installed, e.routes.Changed, e.routes.Took = known, changed, time.Since(began)
	if e.routes.Error = ""; err != nil {
		e.routes.Error = err.Error()
		logf("computed routes: %v", err)
	}
}

// installChanges changes what is new in the routers' tables.
func (e *engine) installChanges() (changed int, err error) {
	t := e.routes.table
	for _, row := range t.rows {
		if row == nil || len(row.stale) == 0 {
			continue
		}
		program, ok := row.router.Program().(routed)
		if !ok {
			continue
		}
		asked := e.net.Do(row.router.Router, func() {
			n, failed := row.change(program, t.to)
			changed += n
			err = errors.Join(err, failed)
		})
		if asked != nil {
			return changed, asked
		}
	}
	return changed, err
}

// change makes those routes anew whose way has changed.
func (r *row) change(program routed, to []*destination) (changed int, err error) {
	for _, i := range r.stale {
		for _, p := range to[i].prefixes {
			if r.fixed[p] {
				continue
			}
			changed++
			if r.ways[i] == 0 {
				program.Delete(p)
				continue
			}
			err = errors.Join(err, program.Add(forward.Route{Prefix: p, Hops: r.sets[r.ways[i]]}))
		}
	}
	r.stale = r.stale[:0]
	return changed, err
}

// GetRoutes says whether computed routes have followed the faults.
func (e server) GetRoutes(context.Context, *emudv1.GetRoutesRequest) (*emudv1.Routes, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return routesMessage(e.routes.Routes), nil
}

// config is what the forwarding part of a router is made from.
func (e *engine) config(cfg *Router) forward.Config {
	c := forward.Config{Addresses: validAddrs(cfg.Own), LPM: cfg.FIB != classFIB}
	for _, end := range e.ends[cfg.Name] {
		c.Ports = append(c.Ports, forward.PortConfig{Addresses: end.Addrs, LinkLocal: cfg.LinkLocal, MTU: end.MTU})
	}
	return c
}

func validAddrs(all []netip.Addr) (valid []netip.Addr) {
	for _, a := range all {
		if a.IsValid() {
			valid = append(valid, a)
		}
	}
	return valid
}
